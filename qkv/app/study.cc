// qkv study: a whole study in one command, resumable at any point.
#include <unistd.h>

#include <cstdio>
#include <optional>

#include "qkv/app/cli.h"
#include "qkv/app/console.h"
#include "qkv/app/run_commands.h"
#include "qkv/app/together.h"
#include "qkv/base/error.h"
#include "qkv/dist/agreement.h"
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
  Cli cli("Runs a whole study: trains and evaluates the model of each row; one table, one report.", "study");
  std::string task_name;
  const std::string name = task_argument(arguments);
  cli.text("STUDY", task_name, "NAME", "which one: knowledge").among({"knowledge"});
  add_config(cli);
  if (!name.empty() && name != "knowledge") throw ConfigError(unknown_name("study", name, {"knowledge"}));
  std::string recipe = option_value(arguments, "--recipe");
  o = study_options(qkv::parse<Recipe>(recipe.empty() ? "course" : recipe), option_value(arguments, "--data"));
  cli.text("--recipe", recipe, "NAME",
           "how the texts are read: course (spans hidden, nothing else) or questions (as the question each text "
           "answers, with the place a small model finds in it) [course]");
  std::string rows;
  std::string known;
  for (const StudyRow& row : study_rows()) known += (known.empty() ? "" : ",") + std::string(row.name);
  cli.text("--rows", rows, "A,B", "rows of the table to train, with commas between them [" + known + "]");
  constexpr int kMostEpochs = 1000000, kMostMoments = 20;
  const auto whole = [&](const char* name, int64_t& value, const std::string& help, int least) {
    cli.integer(name, value, help + " [" + std::to_string(value) + "]", least, kMostEpochs).in("training");
  };
  const auto rate = [&](const char* name, double& value, const std::string& help) {
    cli.number(name, value, help + " [" + format_number(value, 3) + "]", 0, 1).in("training");
  };
  Finetuning& f = o.finetuning;
  whole("--answer-epochs", f.epochs, "epochs of each finetuning", 1);
  rate("--answer-lr", f.lr, "its peak learning rate; it falls to 0");
  whole("--answer-batch", f.batch, "questions in a batch of a finetuning; 0: as many as documents", 0);
  whole("--alone-epochs", f.alone_epochs, "epochs of the row that is not pretrained", 1);
  rate("--alone-lr", f.alone_lr, "its peak learning rate");
  cli.integer("--moments", o.moments, "how many times on the way each model is finetuned and evaluated [4]", 1,
              kMostMoments)
      .in("training");
  cli.text("--out", a.out, "DIR", "the study's folder [runs/study-knowledge]").in("output");
  cli.flag("--json", a.json, "one JSON object with all results on standard output").in("output");
  cli.text("--resume", a.resume, "DIR", "continue this study");
  cli.footer(kFooter);
  cli.settings(o.reading, {"stage", "attention", "positions", "from", "from-weights"});
  if (!cli.parse(arguments)) return false;
  for (const std::string& row : comma_list(rows)) o.rows.emplace_back(study_row(row).name);
  if (o.rows.empty()) {
    for (const StudyRow& row : study_rows()) o.rows.emplace_back(row.name);
  }
  return true;
}

Arguments stored_arguments(const std::string& folder) {
  Arguments arguments = recorded_arguments(folder, FolderKind::study);
  // Version 0.1 knew one recipe and did not say so.
  if (option_value(arguments, "--recipe").empty()) arguments.insert(arguments.end(), {"--recipe", "questions"});
  return arguments;
}

/// Arguments that are given when resuming come after the recorded ones, so they count more.
Arguments joined(Arguments first, const Arguments& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

std::string command_of(const Arguments& arguments) {
  std::string text = "qkv study";
  for (const std::string& a : arguments) text += " " + shell_word(a);
  return text;
}

/// What the command line asks for.
struct Asked {
  StudyOptions options;
  StudyArguments study;
  Arguments kept;  // what the record holds
  bool fresh = true;
};

/// Nothing after --help.
std::optional<Asked> asked_for(const Arguments& given) {
  const Arguments arguments = with_config(given, {"stage", "attention", "positions", "from", "from-weights"});
  Asked asked;
  Arguments all = arguments;
  const std::string resumed = option_value(arguments, "--resume");
  if (!resumed.empty()) {
    if (!option_value(arguments, "--recipe").empty()) {
      throw ConfigError("--recipe cannot change when a study is resumed; start another");
    }
    all = joined(stored_arguments(resumed), without_option(arguments, "--resume"));
  }
  if (!read_options(asked.options, asked.study, all)) return std::nullopt;
  if (resumed.empty() && task_argument(arguments).empty())
    throw ConfigError("give a study; available: knowledge; see 'qkv study --help'");
  if (option_value(all, "--recipe").empty()) all.insert(all.end(), {"--recipe", name_of(asked.options.recipe)});
  // Rows chosen when resuming are for that session, so that two of them can work on one study side by side.
  asked.kept = resumed.empty()
                   ? all
                   : joined(stored_arguments(resumed), without_option(without_option(arguments, "--resume"), "--rows"));
  asked.options.folder = resumed;
  asked.fresh = resumed.empty();
  return asked;
}

int study_and_print(Crew& crew, const Asked& asked) {
  Processes& processes = crew.processes();
  const StudyOptions& options = asked.options;
  RunsConsole console("", asked.study.json ? stderr : stdout);
  bool finished = true;
  const FolderOfRuns folder{options.folder, kStudyRecord, asked.kept, asked.fresh};
  work_in(folder, [&] {
    if (!crew.alone()) {
      same_folder(processes, options.folder, kStudyRecord);
      ApartObserver apart(&console);
      finished = run_study_apart(options, &apart, processes);
    }
    if (finished) finished = run_knowledge_study(options, &console);
  });
  if (!finished) {
    std::fprintf(stderr, "qkv: stopped, saved; continue with: qkv study --resume %s\n", options.folder.c_str());
    return exit_code(processes, true, console.signal());
  }
  const std::vector<StudyResult> results = study_results(options.folder);
  const Baseline baseline = study_baseline(options);
  save_study_report(options, results, baseline, command_of(asked.kept));
  if (asked.study.json) {
    std::printf("%s\n", study_json(options, results).c_str());
  } else {
    const Terminal terminal = detect_terminal(STDOUT_FILENO);
    std::fputs(("\n" + terminal_table(study_table(results, baseline), terminal)).c_str(), stdout);
    print_report(options.folder);
  }
  return exit_code(processes, false, 0);
}

int study_on(Crew& crew, const Arguments& given) {
  Processes& processes = crew.processes();
  std::optional<Asked> asked;
  agree(processes, [&] {
    asked = asked_for(given);
    if (!asked || !crew.first() || !asked->fresh) return;
    asked->options.folder = asked->study.out.empty() ? free_folder("runs/study-knowledge") : asked->study.out;
    RunFolder::refuse_existing(asked->options.folder);
  });
  if (!asked) return 0;
  StudyOptions& options = asked->options;
  if (crew.first()) {
    crew.continue_with("qkv study --resume " + options.folder);
    return study_and_print(crew, *asked);
  }
  options.folder = same_folder(processes, "", kStudyRecord);
  crew.continue_with("qkv study --resume " + options.folder);
  ApartObserver apart(nullptr);
  const bool finished = run_study_apart(options, &apart, processes);
  return exit_code(processes, !finished, apart.signal());
}

}  // namespace

int run_study(const Arguments& given) {
  return together(given, [&](Crew& crew) { return study_on(crew, given); });
}

}  // namespace qkv::app
