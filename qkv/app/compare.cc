// qkv compare: trains one model for each attention mechanism, under one seed or several, and shows them side by side.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "qkv/app/cli.h"
#include "qkv/app/console.h"
#include "qkv/app/run_commands.h"
#include "qkv/app/together.h"
#include "qkv/base/error.h"
#include "qkv/dist/agreement.h"
#include "qkv/report/metric_text.h"
#include "qkv/study/compare.h"
#include "qkv/view/text.h"

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

/// The goal's figure of each run in a sentence.
std::string what_it_means(const std::vector<ReportedRun>& runs) {
  const std::string metric = runs[0].goal.metric;
  std::string text = "The runs differ in their attention alone, so the difference between the curves is what it adds";
  std::vector<std::string> figures;
  for (const ReportedRun& run : runs) {
    const double value = metric_of(run.result.evaluation.metrics, metric);
    if (!std::isnan(value)) figures.push_back(metric_text(metric, value) + " with " + run.result.label);
  }
  return text + (figures.empty() ? "." : ": " + metric_label(metric) + " is " + listed(figures, " and ") + ".");
}

void print_comparison(const std::string& folder, const std::vector<ReportedRun>& all, int64_t seeds) {
  const Terminal terminal = detect_terminal(STDOUT_FILENO);
  const std::vector<ReportedRun> runs = first_seed_of(all, seeds);
  std::fputs(("\n" + terminal_table(transposed(result_table(runs)), terminal)).c_str(), stdout);
  if (seeds > 1) {
    std::printf("(seed %lld)\n\n%s%s\n", static_cast<long long>(runs[0].settings.get_integer("seed")),
                terminal_table(transposed(seed_table(all)), terminal).c_str(), kAboutVariances);
  }
  const auto print_prose = [&](const std::string& text) {
    std::fputs(("\n" + wrapped(text, terminal.width, "", "")).c_str(), stdout);
  };
  std::fputs(("\n" + terminal_plot(loss_plot(runs), terminal)).c_str(), stdout);
  print_prose(what_it_means(runs));
  const auto shown =
      std::find_if(runs.rbegin(), runs.rend(), [](const ReportedRun& run) { return !run.examples.empty(); });
  if (shown != runs.rend()) {
    const ReportedRun::Example& e = shown->examples[0];
    HeatMap map = e.maps.front();
    map.title = e.input + " → " + e.output;
    std::fputs(("\n" + terminal_heatmap(map, terminal)).c_str(), stdout);
    print_prose("The map: each row is a token that '" + shown->result.label +
                "' wrote, each column one that it read; the more a cell stands out, the more it looked there while it "
                "wrote.");
  }
  print_report(folder);
}

int compare_and_print(Crew& crew, const CompareArguments& a, const Arguments& arguments) {
  Processes& processes = crew.processes();
  const CompareOptions& o = a.options;
  RunsConsole console(opening_line(o.folder, *o.spec, o.settings), a.json ? stderr : stdout,
                      static_cast<int64_t>(o.mechanisms.size()) * o.seeds);
  Comparison comparison;
  const FolderOfRuns folder{o.folder, kComparisonRecord, arguments, a.resume.empty()};
  work_in(folder, [&] {
    if (!crew.alone()) {
      same_folder(processes, o.folder, kComparisonRecord);
      ApartObserver apart(&console);
      comparison.interrupted = !compare_apart(o, &apart, processes);
    }
    if (!comparison.interrupted) comparison = compare(o, &console);
  });
  if (comparison.interrupted) {
    std::fprintf(stderr, "qkv: stopped, saved; continue with: qkv compare --resume %s\n", o.folder.c_str());
    return exit_code(processes, true, console.signal());
  }
  save_comparison_report(o.folder, console.reported(), o.seeds);
  if (a.json) {
    std::printf("%s\n", comparison_json(o, comparison).c_str());
  } else {
    print_comparison(o.folder, console.reported(), o.seeds);
  }
  return exit_code(processes, false, 0);
}

int compare_with_first(Crew& crew, CompareOptions options) {
  Processes& processes = crew.processes();
  options.folder = same_folder(processes, "", kComparisonRecord);
  crew.continue_with("qkv compare --resume " + options.folder);
  ApartObserver apart(nullptr);
  const bool finished = compare_apart(options, &apart, processes);
  return exit_code(processes, !finished, apart.signal());
}

/// The mechanisms that the task has; none where no task was given.
std::vector<std::string> mechanisms_of(const Settings& settings) {
  for (const Setting& s : settings.all()) {
    if (s.name == "attention") return s.choices;
  }
  return {};
}

/// Compared unless asked otherwise: a model that cannot look, or looks everywhere alike, and the task's own.
std::vector<std::string> usual_mechanisms(const Settings& settings) {
  const std::vector<std::string> all = mechanisms_of(settings);
  if (all.empty()) return {};
  const bool can_do_without = std::find(all.begin(), all.end(), "none") != all.end();
  return {can_do_without ? "none" : "mean", settings.get_text("attention")};
}

/// Declares and reads the options; false after --help.
bool read_options(CompareArguments& a, const Arguments& arguments) {
  const std::string name = task_argument(arguments);
  Cli cli("Trains one model for each attention mechanism under the same seeds; one table, one picture.",
          name.empty() ? "compare" : "compare " + name);
  std::string task_name;
  add_task(cli, name, task_name);
  if (!name.empty()) {
    a.options.spec = &find_task(name);
    a.options.settings = a.options.spec->settings();
    check(a.options);
  }
  const std::string usual =
      name.empty() ? "none or mean, and the task's own" : listed(usual_mechanisms(a.options.settings), ",");
  cli.call("--attention", "A,B,C", "mechanisms to compare, with commas between them [" + usual + "]",
           [&a](const std::string& list) {
             a.options.mechanisms = comma_list(list);
             if (a.options.mechanisms.empty()) throw ConfigError("--attention names no mechanism");
             for (const std::string& mechanism : a.options.mechanisms) {
               if (a.options.spec != nullptr) Settings(a.options.settings).set("attention", mechanism);
             }
           })
      .among(mechanisms_of(a.options.settings))
      .in("model");
  cli.integer("--seeds", a.options.seeds, "runs of each mechanism: --seed, the next one, and so on [1]", 1, 100)
      .in("training");
  cli.text("--out", a.out, "DIR", "the comparison's folder [runs/compare-TASK]").in("output");
  cli.flag("--json", a.json, "one JSON object with all results on standard output").in("output");
  cli.text("--resume", a.resume, "DIR", "continue this comparison");
  cli.footer(kFooter);
  cli.settings(a.options.settings, {"attention"});
  return cli.parse(arguments);
}

/// What the command line asks for, with the arguments that a record of it holds; nothing after --help.
std::optional<std::pair<CompareArguments, Arguments>> asked_for(const Arguments& words) {
  const Arguments given = with_config(words, {"attention"});
  CompareArguments a;
  if (!read_options(a, given)) return std::nullopt;
  Arguments arguments = given;
  if (!a.resume.empty()) {
    if (a.options.spec != nullptr || !a.out.empty())
      throw ConfigError("--resume takes everything else from the comparison itself");
    arguments = recorded_arguments(a.resume, FolderKind::comparison);
    CompareArguments stored;
    if (!read_options(stored, arguments)) return std::nullopt;
    stored.json = a.json;
    stored.resume = a.resume;
    a = std::move(stored);
  }
  CompareOptions& o = a.options;
  if (o.spec == nullptr)
    throw ConfigError("give a task to compare mechanisms on: " + task_names() + "; see 'qkv compare --help'");
  if (o.mechanisms.empty()) o.mechanisms = usual_mechanisms(o.settings);
  check(o);
  return std::pair{std::move(a), std::move(arguments)};
}

int compare_on(Crew& crew, const Arguments& words) {
  std::optional<std::pair<CompareArguments, Arguments>> asked;
  agree(crew.processes(), [&] {
    asked = asked_for(words);
    if (!asked || !crew.first()) return;
    auto& [a, arguments] = *asked;
    CompareOptions& o = a.options;
    if (!a.resume.empty()) {
      o.folder = a.resume;
    } else {
      o.folder = a.out.empty() ? free_folder("runs/compare-" + std::string(o.spec->name)) : a.out;
      RunFolder::refuse_existing(o.folder);
    }
  });
  if (!asked) return 0;
  if (!crew.first()) return compare_with_first(crew, asked->first.options);
  crew.continue_with("qkv compare --resume " + asked->first.options.folder);
  return compare_and_print(crew, asked->first, asked->second);
}

}  // namespace

int run_compare(const Arguments& words) {
  return together(words, [&](Crew& crew) { return compare_on(crew, words); });
}

}  // namespace qkv::app
