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
#include "qkv/view/text.h"

namespace qkv::app {
namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  qkv study knowledge                       invented people: what reading is for, in a few minutes\n"
    "  qkv study knowledge --recipe questions    the texts read as the questions they answer\n"
    "  qkv study knowledge --data birthplace     the real study (hours for each row; Ctrl-C any time)\n"
    "  qkv study knowledge --data birthplace --rows rotary --epochs 100\n"
    "  qkv study --resume runs/study-knowledge   continues, to the same bits\n"
    "  qkv study --resume runs/study-knowledge --epochs 400   reads for more epochs\n"
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
  if (!name.empty() && name != "knowledge") throw ConfigError("no study '" + name + "'; available: knowledge");
  std::string recipe = option_value(arguments, "--recipe");
  o = study_options(qkv::parse<Recipe>(recipe.empty() ? "course" : recipe), option_value(arguments, "--data"));
  cli.add_option("--recipe", recipe,
                 "how the texts are read: course (spans hidden, nothing else) or questions (as the question each text "
                 "answers, with the place a small model finds in it) [course]")
      ->take_last()
      ->type_name("NAME");
  std::string rows;
  cli.add_option("--rows", rows, "rows to train, with commas between them [none,vanilla,synthesizer,rotary]")
      ->take_last()
      ->type_name("A,B");
  constexpr int kMostEpochs = 1000000, kMostMoments = 20;
  const auto whole = [&](const char* name, int64_t& value, const std::string& help, int least) {
    cli.add_option(name, value, help + " [" + std::to_string(value) + "]")
        ->check(CLI::Range(least, kMostEpochs).description(""))
        ->take_last()
        ->type_name("N");
  };
  const auto rate = [&](const char* name, double& value, const std::string& help) {
    cli.add_option(name, value, help + " [" + format_number(value, 3) + "]")
        ->check(CLI::Range(0.0, 1.0).description(""))
        ->take_last()
        ->type_name("X");
  };
  Finetuning& f = o.finetuning;
  whole("--answer-epochs", f.epochs, "epochs of each finetuning", 1);
  rate("--answer-lr", f.lr, "its peak learning rate; it falls to 0");
  whole("--answer-batch", f.batch, "questions in a batch of a finetuning; 0: as many as texts", 0);
  whole("--alone-epochs", f.alone_epochs, "epochs of the row that reads nothing", 1);
  rate("--alone-lr", f.alone_lr, "its peak learning rate");
  cli.add_option("--moments", o.moments, "how often along the way a row is finetuned and asked [4]")
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
  for (std::string row; std::getline(list, row, ',');) o.rows.emplace_back(study_row(row).name);
  if (o.rows.empty()) {
    for (const StudyRow& row : study_rows()) o.rows.emplace_back(row.name);
  }
  return true;
}

Arguments stored_arguments(const std::string& folder) {
  const std::string file = folder + "/study.json";
  if (std::error_code error; !std::filesystem::exists(file, error)) {
    throw IoError("no study in " + folder + ": there is no study.json; runs continue with 'qkv train --resume'");
  }
  Arguments arguments = JsonObject(read_json(file, "the record of a study"), file).texts("arguments");
  // Version 0.1 knew one recipe and did not say so.
  if (option_value(arguments, "--recipe").empty()) arguments.insert(arguments.end(), {"--recipe", "questions"});
  return arguments;
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
  if (!resumed.empty()) {
    if (!option_value(arguments, "--recipe").empty()) {
      throw ConfigError("--recipe cannot change when a study is resumed; start another");
    }
    all = joined(stored_arguments(resumed), without(arguments, "--resume"));
  }
  if (!read_options(options, a, all)) return 0;
  if (resumed.empty() && task_argument(arguments).empty()) throw ConfigError("give a study; available: knowledge");
  options.folder = !resumed.empty() ? resumed : a.out.empty() ? free_folder("runs/study-knowledge") : a.out;
  if (resumed.empty()) RunFolder::refuse_existing(options.folder);
  if (option_value(all, "--recipe").empty()) all.insert(all.end(), {"--recipe", name_of(options.recipe)});
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
