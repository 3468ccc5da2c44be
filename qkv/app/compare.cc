// qkv compare: trains one model for each attention mechanism under one seed and shows them side by side.
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "qkv/app/cli.h"
#include "qkv/app/console.h"
#include "qkv/app/run_commands.h"
#include "qkv/base/error.h"
#include "qkv/io/json.h"
#include "qkv/train/run_report.h"
#include "qkv/view/drawing.h"

namespace qkv::app {
namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  qkv compare reverse --attention none,dot                  what attention is for (about a minute)\n"
    "  qkv compare reverse --attention dot,scaled-dot,additive   three mechanisms, one seed, one table\n"
    "  qkv compare --resume runs/compare-reverse                 goes on after Ctrl-C or a crash\n"
    "\nThe folder holds one run for each mechanism, curves.svg, compare.json and report.html.\n";

struct Comparison {
  const TaskSpec* spec = nullptr;
  std::vector<std::string> mechanisms;
  Settings settings;
  std::string folder;
  Arguments arguments;  // as given, for --resume
  bool json = false;
};

RunFolder open_or_create(const Comparison& c, const std::string& mechanism, std::unique_ptr<Task>& task) {
  const std::string path = c.folder + "/" + mechanism;
  if (std::error_code error; std::filesystem::exists(path + "/config.json", error)) {
    RunFolder run = RunFolder::open(path);
    task = run.make_task();
    return run;
  }
  Settings settings = c.settings;
  settings.set("attention", mechanism);
  task = make_new_task(*c.spec, settings);
  return RunFolder::create(path, *c.spec, settings, *task);
}

void print_comparison(const Comparison& c, const std::vector<ReportedRun>& runs) {
  const Terminal terminal = detect_terminal(STDOUT_FILENO);
  std::fputs(("\n" + terminal_table(transposed(result_table(runs)), terminal)).c_str(), stdout);
  std::fputs(("\n" + terminal_plot(loss_plot(runs), terminal)).c_str(), stdout);
  for (size_t i = runs.size(); i-- > 0;) {
    if (runs[i].examples.empty()) continue;
    const RunFolder run = RunFolder::open(runs[i].result.run);
    const auto task = run.make_task();
    run.load_weights(parameters_of(*task));
    print_example_map(*task, runs[i].examples[0].input);
    break;
  }
  std::printf("\nreport: %s/report.html\n", c.folder.c_str());
}

std::string comparison_json(const Comparison& c, const std::vector<ReportedRun>& runs) {
  Json list = Json::array();
  double seconds = 0;
  for (const ReportedRun& r : runs) {
    list.push_back(parse_json(result_json(r.result, r.settings), {.where = r.result.run}));
    seconds += r.result.training.state.seconds;
  }
  return Json{{"task", c.spec->name},
              {"seed", c.settings.get_integer("seed")},
              {"seconds", seconds},
              {"report", c.folder + "/report.html"},
              {"runs", list}}
      .dump();
}

int compare(const Comparison& c) {
  make_folders(c.folder);
  write_file_atomic(c.folder + "/compare.json", Json{{"arguments", c.arguments}}.dump(2) + "\n");
  std::FILE* const out = c.json ? stderr : stdout;
  std::vector<ReportedRun> runs;
  for (const std::string& mechanism : c.mechanisms) {
    std::unique_ptr<Task> task;
    RunFolder run = open_or_create(c, mechanism, task);
    run.lock();
    if (runs.empty()) print_notes(*task);
    ConsoleObserver console(mechanism, runs.empty() ? opening_line(c.folder, *c.spec, c.settings) : "", out);
    const SessionResult result = run_session(run, *task, &console);
    if (result.training.interrupted) {
      std::fprintf(stderr, "qkv: stopped, saved; go on with: qkv compare --resume %s\n", c.folder.c_str());
      return 128 + console.signal();
    }
    runs.push_back(reported_run(run, *task, result));
  }
  save_drawing(draw_plot(loss_plot(runs)), c.folder + "/curves.svg");
  save_report(c.folder + "/report.html", runs);
  if (c.json) {
    std::printf("%s\n", comparison_json(c, runs).c_str());
  } else {
    print_comparison(c, runs);
  }
  return 0;
}

Arguments stored_arguments(const std::string& folder) {
  const std::string file = folder + "/compare.json";
  if (std::error_code error; !std::filesystem::exists(file, error)) {
    throw IoError("no comparison in " + folder +
                  ": there is no compare.json; single runs go on with 'qkv train --resume'");
  }
  return JsonObject(read_json(file, "the record of a comparison"), file).texts("arguments");
}

/// Declares and reads the options; false after --help.
bool read_options(Comparison& c, const Arguments& arguments, std::string& out, std::string& resume) {
  CLI::App cli("Trains one model for each attention mechanism under one seed; one table, one picture.", "compare");
  const std::string name = task_argument(arguments);
  std::string task_name;
  cli.add_option("TASK", task_name, "what to learn: " + task_names());
  if (!name.empty()) {
    c.spec = &find_task(name);
    c.settings = c.spec->settings();
    if (!c.settings.has("attention")) throw ConfigError("task '" + name + "' has no choice of attention to compare");
  }
  cli.add_option("--attention", c.mechanisms, "mechanisms to compare, with commas between them [none,dot]")
      ->delimiter(',')
      ->type_name("A,B,C");
  cli.add_option("--out", out, "the comparison's folder [runs/compare-TASK]")->type_name("DIR");
  cli.add_option("--resume", resume, "go on with this comparison")->type_name("DIR");
  cli.add_flag("--json", c.json, "one JSON object with all results on standard output");
  add_threads(cli);
  cli.footer(kFooter);
  add_settings(cli, c.settings, {"attention"});
  return parse(cli, arguments);
}

}  // namespace

int run_compare(const Arguments& arguments) {
  Comparison c;
  std::string out, resume;
  if (!read_options(c, arguments, out, resume)) return 0;
  c.arguments = arguments;
  if (!resume.empty()) {
    if (c.spec != nullptr || !out.empty())
      throw ConfigError("--resume takes everything else from the comparison itself");
    const bool json = c.json;
    c = {};
    c.arguments = stored_arguments(resume);
    std::string ignored;
    if (!read_options(c, c.arguments, out, ignored)) return 0;
    c.json = json;
    out = resume;
  }
  if (c.spec == nullptr) throw ConfigError("compare what? give a task: " + task_names());
  if (c.mechanisms.empty()) c.mechanisms = {"none", "dot"};
  for (size_t i = 0; i < c.mechanisms.size(); ++i) {
    c.settings.set("attention", c.mechanisms[i]);
    for (size_t k = 0; k < i; ++k) {
      if (c.mechanisms[k] == c.mechanisms[i])
        throw ConfigError("--attention: '" + c.mechanisms[i] + "' is there twice");
    }
  }
  c.folder = out.empty() ? free_folder("runs/compare-" + std::string(c.spec->name)) : out;
  if (resume.empty()) RunFolder::refuse_existing(c.folder);
  return compare(c);
}

}  // namespace qkv::app
