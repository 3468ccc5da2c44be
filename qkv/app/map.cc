// qkv map: where a trained model looks, as a picture, a page, a table or in the terminal.
#include <unistd.h>

#include <cstdio>

#include "qkv/app/cli.h"
#include "qkv/app/run_commands.h"
#include "qkv/base/error.h"
#include "qkv/core/autograd.h"
#include "qkv/report/report.h"
#include "qkv/report/trace_maps.h"

namespace qkv::app {
namespace {

constexpr int kColumns = 4;

constexpr const char* kFooter =
    "Examples:\n"
    "  qkv map runs/reverse-dot --input abcdabcd                    in the terminal\n"
    "  qkv map runs/reverse-dot --input abcdabcd --out map.svg      a picture (.png, .svg), a page (.html) or .csv\n"
    "  qkv map runs/reverse-multi-head --input abcd --head 2        one head of several\n"
    "  qkv map runs/reverse-dot --examples 8 --out maps.html        a page of eight inputs the program chooses\n"
    "  qkv map runs/images-multi-head shoe.png --out map.png        over a picture; val:17 is a validation image\n";

struct MapRequest {
  std::vector<std::string> inputs;
  int64_t examples = 0;
  std::string out;
  TraceChoice choice;
};

/// One input with its output as title and its maps.
struct Traced {
  std::string title;
  std::vector<HeatMap> maps;
  std::optional<Drawing> over_picture;  // the maps laid over the picture the model saw
};

void check_out(const std::string& out) {
  for (const char* known : {".png", ".svg", ".html", ".csv"}) {
    if (out.empty() || out.ends_with(known)) return require_pictures(out);
  }
  throw ConfigError("--out " + out + ": a map is saved as .png, .svg, .html or .csv");
}

std::vector<Traced> trace_all(Task& task, const MapRequest& r) {
  std::vector<std::string> inputs = r.inputs;
  for (std::string& example : task.examples(r.examples)) inputs.push_back(std::move(example));
  std::vector<Traced> all;
  for (const std::string& input : inputs) {
    const TracedExample traced = task.trace(input);
    // A data URL is as long as the picture it holds.
    const std::string why = task.about_example(input), name = input.starts_with("data:") ? "picture" : input;
    const std::string title = (why.empty() ? "" : why + ": ") + name + " → " + traced.output;
    all.push_back({title, maps_of(traced, r.choice), {}});
    if (traced.picture) {
      const bool page = r.out.ends_with(".html");
      all.back().over_picture = draw_picture_maps(page ? "" : title, traced, r.choice);
    }
  }
  return all;
}

void save_page(const std::vector<Traced>& all, const std::string& path) {
  const bool alone = all.size() == 1;
  Report report(alone ? all[0].title : "Attention maps",
                all[0].over_picture ? "Which parts of the picture the model looks at, layer by layer."
                                    : "Each row is one token the model wrote, each column one it read.");
  for (const Traced& t : all) {
    if (!alone) report.subsection(t.title);
    if (t.over_picture) {
      report.figure(*t.over_picture);
    } else if (t.maps.size() == 1) {
      report.figure(draw_heatmap(t.maps[0]), describe_weights(t.maps[0]));
    } else {
      report.figure(draw_heatmaps("", t.maps, kColumns));
    }
  }
  report.save(path);
}

void save_maps(std::vector<Traced> all, const std::string& path) {
  if (path.ends_with(".html")) return save_page(all, path);
  if (all[0].over_picture && !path.ends_with(".csv")) {
    std::vector<Drawing> drawings;
    for (Traced& t : all) drawings.push_back(std::move(*t.over_picture));
    return save_drawing(arrange("", std::move(drawings), 1), path);
  }
  std::vector<HeatMap> maps;
  for (Traced& t : all) {
    for (HeatMap& map : t.maps) {
      map.title = t.maps.size() == 1 ? t.title : all.size() == 1 ? map.title : t.title + ", " + map.title;
      maps.push_back(std::move(map));
    }
  }
  if (maps.size() == 1) {
    save_heatmap(maps[0], path);
  } else {
    save_heatmaps(all.size() == 1 ? all[0].title : "", maps, kColumns, path);
  }
}

void print_maps(const std::vector<Traced>& all) {
  const Terminal terminal = detect_terminal(STDOUT_FILENO);
  for (const Traced& t : all) {
    std::printf("%s%s\n", &t == &all[0] ? "" : "\n", t.title.c_str());
    for (HeatMap map : t.maps) {
      if (t.maps.size() == 1) map.title.clear();
      std::fputs(("\n" + terminal_heatmap(map, terminal)).c_str(), stdout);
    }
  }
}

}  // namespace

int run_map(const Arguments& arguments) {
  Cli cli("Shows where a trained model looks while it works on one input.", "map");
  std::string path, weights;
  MapRequest r;
  cli.text("RUN", path, "DIR", "the run's folder").required();
  std::vector<std::string> named;
  cli.texts("INPUT", named, "TEXT", "what the model is to work on, as with --input");
  cli.texts("--input", r.inputs, "TEXT", "what the model is to work on; may be given several times");
  cli.integer("--examples", r.examples, "this many inputs chosen from the validation data [1 where no input is given]",
              1, 1000);
  cli.text("--site", r.choice.site, "SITE",
           "which attention: alignment (heads together), cross, encoder or decoder [alignment, else all]");
  cli.integer("--layer", r.choice.layer, "only this layer, from 0 [all]", 0, 1000);
  cli.integer("--head", r.choice.head, "only this head, from 0 [all]", 0, 1000);
  cli.text("--out", r.out, "FILE", "file to write: .png, .svg, .html or .csv [the terminal]");
  cli.weights(weights);
  cli.footer(kFooter);
  if (!cli.parse(arguments)) return 0;
  r.inputs.insert(r.inputs.begin(), named.begin(), named.end());
  if (r.inputs.empty() && r.examples == 0) r.examples = 1;
  check_out(r.out);
  OpenedRun run = load_run(path, weights);
  const NoGrad no_grad;
  const std::vector<Traced> all = trace_all(*run.task, r);
  if (r.out.empty()) {
    print_maps(all);
    return 0;
  }
  save_maps(all, r.out);
  std::printf("%s\n", r.out.c_str());
  return 0;
}

}  // namespace qkv::app
