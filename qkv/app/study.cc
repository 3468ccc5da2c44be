// qkv study: a whole study in one command, resumable at any point.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <sstream>

#include "qkv/app/cli.h"
#include "qkv/app/console.h"
#include "qkv/app/run_commands.h"
#include "qkv/base/error.h"
#include "qkv/io/json.h"
#include "qkv/report/study_report.h"
#include "qkv/view/table.h"

namespace qkv::app {
namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  qkv study knowledge                       invented people: what reading is for, in a few minutes\n"
    "  qkv study knowledge --data birthplace     the real study (hours; Ctrl-C any time)\n"
    "  qkv study knowledge --data birthplace --rows rotary --epochs 100\n"
    "  qkv study --resume runs/study-knowledge   continues, to the same bits\n"
    "  qkv study --resume runs/study-knowledge --epochs 400   reads on further\n"
    "\nThe folder holds one run for each part, results.json and report.html.\n";

struct StudyArguments {
  std::string out, resume;
  bool json = false;
};

bool read_options(StudyOptions& o, StudyArguments& a, const Arguments& arguments) {
  CLI::App cli("Runs a whole study: every row trained and asked; one table, one report.", "study");
  std::string task_name;
  const std::string name = task_argument(arguments);
  cli.add_option("STUDY", task_name, "which one: knowledge");
  if (!name.empty() && name != "knowledge") throw ConfigError("no study '" + name + "'; there is: knowledge");
  o.reading = study_reading(option_value(arguments, "--data"));
  std::string rows;
  cli.add_option("--rows", rows, "rows to train, with commas between them [none,pretrained,synthesizer,rotary]")
      ->take_last()
      ->type_name("A,B");
  constexpr int kMostEpochs = 1000000, kMostMoments = 20;
  cli.add_option("--answer-epochs", o.answer_epochs, "epochs of each finetuning [3]")
      ->check(CLI::Range(1, kMostEpochs).description(""))
      ->take_last()
      ->type_name("N");
  cli.add_option("--alone-epochs", o.alone_epochs, "epochs of the row that reads nothing [75]")
      ->check(CLI::Range(1, kMostEpochs).description(""))
      ->take_last()
      ->type_name("N");
  cli.add_option("--moments", o.moments, "how often on the way a row is finetuned and asked [4]")
      ->check(CLI::Range(1, kMostMoments).description(""))
      ->take_last()
      ->type_name("N");
  cli.add_option("--out", a.out, "the study's folder [runs/study-knowledge]")->take_last()->type_name("DIR");
  cli.add_option("--resume", a.resume, "continue this study")->type_name("DIR");
  cli.add_flag("--json", a.json, "one JSON object with all results on standard output");
  add_threads(cli);
  cli.footer(kFooter);
  add_settings(cli, o.reading, {"stage", "attention", "positions", "from", "from-weights"});
  if (!parse(cli, arguments)) return false;
  std::istringstream list(rows);
  for (std::string row; std::getline(list, row, ',');) o.rows.push_back(row);
  if (o.rows.empty()) {
    for (const StudyRow& row : study_rows()) o.rows.emplace_back(row.name);
  }
  for (const std::string& row : o.rows) study_row(row);
  return true;
}

Arguments stored_arguments(const std::string& folder) {
  const std::string file = folder + "/study.json";
  if (std::error_code error; !std::filesystem::exists(file, error)) {
    throw IoError("no study in " + folder + ": there is no study.json; runs continue with 'qkv train --resume'");
  }
  return JsonObject(read_json(file, "the record of a study"), file).texts("arguments");
}

/// `arguments` without an option and its value.
Arguments without(const Arguments& arguments, const std::string& option) {
  Arguments rest;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == option) {
      ++i;
    } else if (!arguments[i].starts_with(option + "=")) {
      rest.push_back(arguments[i]);
    }
  }
  return rest;
}

/// What is said when resuming comes after what was said at first, and counts.
Arguments joined(Arguments first, const Arguments& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

std::string command_of(const Arguments& arguments) {
  std::string text = "qkv study";
  for (const std::string& a : arguments) text += " " + (a.find(' ') == std::string::npos ? a : "'" + a + "'");
  return text;
}

}  // namespace

int run_study(const Arguments& arguments) {
  StudyOptions options;
  StudyArguments a;
  Arguments all = arguments;
  const std::string resumed = option_value(arguments, "--resume");
  if (!resumed.empty()) all = joined(stored_arguments(resumed), without(arguments, "--resume"));
  if (!read_options(options, a, all)) return 0;
  if (resumed.empty() && task_argument(arguments).empty()) throw ConfigError("study what? there is: knowledge");
  options.folder = !resumed.empty() ? resumed : a.out.empty() ? free_folder("runs/study-knowledge") : a.out;
  if (resumed.empty()) RunFolder::refuse_existing(options.folder);
  // Rows chosen when resuming are for that session, so that two of them can work on one study side by side.
  const Arguments kept =
      resumed.empty() ? all : joined(stored_arguments(resumed), without(without(arguments, "--resume"), "--rows"));
  RunsConsole console("", a.json ? stderr : stdout);
  bool finished = false;
  const FolderOfRuns folder{options.folder, "study.json", kept, resumed.empty()};
  work_in(folder, [&] { finished = run_knowledge_study(options, &console); });
  if (!finished) {
    std::fprintf(stderr, "qkv: stopped, saved; continue with: qkv study --resume %s\n", options.folder.c_str());
    return 128 + console.signal();
  }
  const std::vector<StudyResult> results = study_results(options.folder);
  const Baseline baseline = study_baseline(options);
  save_study_report(options, results, baseline, command_of(kept));
  if (a.json) {
    std::printf("%s\n", study_json(options, results).c_str());
  } else {
    const Terminal terminal = detect_terminal(STDOUT_FILENO);
    std::fputs(("\n" + terminal_table(study_table(results, baseline), terminal)).c_str(), stdout);
    std::printf("\nreport: %s/report.html\n", options.folder.c_str());
  }
  return 0;
}

}  // namespace qkv::app
