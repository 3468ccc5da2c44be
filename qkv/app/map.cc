// qkv map: where a trained model looks, as a picture, a page, a table or in the terminal.
#include <unistd.h>

#include <cstdio>

#include "qkv/app/cli.h"
#include "qkv/app/run_commands.h"
#include "qkv/base/error.h"
#include "qkv/core/autograd.h"
#include "qkv/train/trace_maps.h"
#include "qkv/view/report.h"

namespace qkv::app {
namespace {

constexpr int kColumns = 4;

constexpr const char* kFooter =
    "Examples:\n"
    "  qkv map runs/reverse-dot --input abcdabcd                    in the terminal\n"
    "  qkv map runs/reverse-dot --input abcdabcd --out map.svg      a picture (.png, .svg), a page (.html) or .csv\n"
    "  qkv map runs/reverse-multi-head --input abcd --head 2        one head of several\n";

struct MapRequest {
  std::string input, out;
  TraceChoice choice;
};

bool ends_with(const std::string& text, const char* end) { return text.ends_with(end); }

void check_out(const std::string& out) {
  for (const char* known : {".png", ".svg", ".html", ".csv"}) {
    if (out.empty() || ends_with(out, known)) return;
  }
  throw ConfigError("--out " + out + ": a map is saved as .png, .svg, .html or .csv");
}

void save_page(const std::string& title, const std::vector<HeatMap>& maps, const std::string& path) {
  Report report(title, "Each row is one token the model wrote, each column one it read.");
  if (maps.size() == 1) {
    report.figure(draw_heatmap(maps[0]), describe_weights(maps[0]));
  } else {
    report.figure(draw_heatmaps("", maps, kColumns));
  }
  report.save(path);
}

}  // namespace

int run_map(const Arguments& arguments) {
  CLI::App cli("Shows where a trained model looks while it works on one input.", "map");
  std::string path, weights;
  MapRequest r;
  cli.add_option("RUN", path, "the run's folder")->required();
  cli.add_option("--input", r.input, "what the model is to work on")->required()->type_name("TEXT");
  cli.add_option("--site", r.choice.site, "which attention: cross, encoder or decoder [all]")->type_name("SITE");
  cli.add_option("--layer", r.choice.layer, "only this layer, from 0 [all]")
      ->check(CLI::Range(0, 1000).description(""))
      ->type_name("L");
  cli.add_option("--head", r.choice.head, "only this head, from 0 [all]")
      ->check(CLI::Range(0, 1000).description(""))
      ->type_name("H");
  cli.add_option("--out", r.out, "file to write: .png, .svg, .html or .csv [the terminal]")->type_name("FILE");
  add_weights(cli, weights);
  add_threads(cli);
  cli.footer(kFooter);
  if (!parse(cli, arguments)) return 0;
  check_out(r.out);
  OpenedRun run = open_run(path, weights);
  const NoGrad no_grad;
  const TracedExample traced = run.task->trace(r.input);
  std::vector<HeatMap> maps = maps_of(traced, r.choice);
  const std::string title = r.input + " → " + traced.output;
  if (r.out.empty()) {
    const Terminal terminal = detect_terminal(STDOUT_FILENO);
    std::printf("%s\n", title.c_str());
    for (const HeatMap& map : maps) std::fputs(("\n" + terminal_heatmap(map, terminal)).c_str(), stdout);
    return 0;
  }
  if (maps.size() == 1) maps[0].title = title;
  if (ends_with(r.out, ".html")) {
    save_page(title, maps, r.out);
  } else if (maps.size() == 1) {
    save_heatmap(maps[0], r.out);
  } else {
    save_heatmaps(title, maps, kColumns, r.out);
  }
  std::printf("%s: %zu map%s\n", r.out.c_str(), maps.size(), maps.size() == 1 ? "" : "s");
  return 0;
}

}  // namespace qkv::app
