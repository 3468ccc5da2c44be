// qkv compare: trains one model for each attention mechanism, under one seed or several, and shows them side by side.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "qkv/app/cli.h"
#include "qkv/app/console.h"
#include "qkv/app/run_commands.h"
#include "qkv/base/error.h"
#include "qkv/io/json.h"
#include "qkv/study/compare.h"

namespace qkv::app {
namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  qkv compare reverse --attention none,dot                  what attention is for (about a minute)\n"
    "  qkv compare reverse --attention dot,scaled-dot,additive   three mechanisms, one seed, one table\n"
    "  qkv compare reverse --attention none,dot --seeds 3        three runs of each: how much the seed matters\n"
    "  qkv compare --resume runs/compare-reverse                 continues after Ctrl-C or a crash\n"
    "\nThe folder holds one run for each mechanism, curves.svg, compare.json and report.html.\n";

struct CompareArguments {
  CompareOptions options;
  std::string out, resume;
  bool json = false;
};

void print_comparison(const std::string& folder, const std::vector<ReportedRun>& all, int64_t seeds) {
  const Terminal terminal = detect_terminal(STDOUT_FILENO);
  const std::vector<ReportedRun> runs = first_seed_of(all, seeds);
  std::fputs(("\n" + terminal_table(transposed(result_table(runs)), terminal)).c_str(), stdout);
  if (seeds > 1) {
    std::printf("(seed %lld)\n\n%s%s\n", static_cast<long long>(runs[0].settings.get_integer("seed")),
                terminal_table(transposed(seed_table(all)), terminal).c_str(), kAboutVariances);
  }
  std::fputs(("\n" + terminal_plot(loss_plot(runs), terminal)).c_str(), stdout);
  const auto shown =
      std::find_if(runs.rbegin(), runs.rend(), [](const ReportedRun& run) { return !run.examples.empty(); });
  if (shown != runs.rend()) {
    const ReportedRun::Example& e = shown->examples[0];
    HeatMap map = e.maps.front();
    map.title = e.input + " → " + e.output;
    std::fputs(("\n" + terminal_heatmap(map, terminal)).c_str(), stdout);
  }
  std::printf("\nreport: %s/report.html\n", folder.c_str());
}

int compare_and_print(const CompareArguments& a, const Arguments& arguments) {
  const CompareOptions& o = a.options;
  RunsConsole console(opening_line(o.folder, *o.spec, o.settings), a.json ? stderr : stdout);
  Comparison comparison;
  const FolderOfRuns folder{o.folder, "compare.json", arguments, a.resume.empty()};
  work_in(folder, [&] { comparison = compare(o, &console); });
  if (comparison.interrupted) {
    std::fprintf(stderr, "qkv: stopped, saved; continue with: qkv compare --resume %s\n", o.folder.c_str());
    return 128 + console.signal();
  }
  save_comparison_report(o.folder, console.reported(), o.seeds);
  if (a.json) {
    std::printf("%s\n", comparison_json(o, comparison).c_str());
  } else {
    print_comparison(o.folder, console.reported(), o.seeds);
  }
  return 0;
}

Arguments stored_arguments(const std::string& folder) {
  const std::string file = folder + "/compare.json";
  if (std::error_code error; !std::filesystem::exists(file, error)) {
    throw IoError("no comparison in " + folder +
                  ": there is no compare.json; single runs continue with 'qkv train --resume'");
  }
  return JsonObject(read_json(file, "the record of a comparison"), file).texts("arguments");
}

/// Declares and reads the options; false after --help.
bool read_options(CompareArguments& a, const Arguments& arguments) {
  CLI::App cli("Trains one model for each attention mechanism under the same seeds; one table, one picture.",
               "compare");
  const std::string name = task_argument(arguments);
  std::string task_name;
  cli.add_option("TASK", task_name, "what to learn: " + task_names());
  if (!name.empty()) {
    a.options.spec = &find_task(name);
    a.options.settings = a.options.spec->settings();
    check(a.options);
  }
  const auto exists = [&a](const std::string& mechanism) {
    if (a.options.spec != nullptr) Settings(a.options.settings).set("attention", mechanism);
    return std::string();
  };
  cli.add_option("--attention", a.options.mechanisms, "mechanisms to compare, with commas between them [none,dot]")
      ->delimiter(',')
      ->check(exists, "")
      ->type_name("A,B,C");
  cli.add_option("--seeds", a.options.seeds, "runs of each mechanism: --seed, the next one, and so on [1]")
      ->check(CLI::Range(1, 100).description(""))
      ->type_name("N");
  cli.add_option("--out", a.out, "the comparison's folder [runs/compare-TASK]")->type_name("DIR");
  cli.add_option("--resume", a.resume, "continue this comparison")->type_name("DIR");
  cli.add_flag("--json", a.json, "one JSON object with all results on standard output");
  add_threads(cli);
  cli.footer(kFooter);
  add_settings(cli, a.options.settings, {"attention"});
  return parse(cli, arguments);
}

}  // namespace

int run_compare(const Arguments& given) {
  CompareArguments a;
  if (!read_options(a, given)) return 0;
  Arguments arguments = given;
  if (!a.resume.empty()) {
    if (a.options.spec != nullptr || !a.out.empty())
      throw ConfigError("--resume takes everything else from the comparison itself");
    arguments = stored_arguments(a.resume);
    CompareArguments stored;
    if (!read_options(stored, arguments)) return 0;
    stored.json = a.json;
    stored.resume = a.resume;
    a = std::move(stored);
  }
  CompareOptions& o = a.options;
  if (o.spec == nullptr) throw ConfigError("give a task to compare mechanisms on: " + task_names());
  if (o.mechanisms.empty()) o.mechanisms = {"none", "dot"};
  check(o);
  if (!a.resume.empty()) {
    o.folder = a.resume;
  } else {
    o.folder = a.out.empty() ? free_folder("runs/compare-" + std::string(o.spec->name)) : a.out;
    RunFolder::refuse_existing(o.folder);
  }
  return compare_and_print(a, arguments);
}

}  // namespace qkv::app
