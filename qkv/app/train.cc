// qkv train: trains a task's model in a run folder, or continues one.
#include <cstdio>

#include "qkv/app/cli.h"
#include "qkv/app/console.h"
#include "qkv/app/run_commands.h"
#include "qkv/base/error.h"
#include "qkv/core/autograd.h"
#include "qkv/kernels/simd_target.h"
#include "qkv/report/run_report.h"

namespace qkv::app {
namespace {

constexpr const char* kExamples =
    "  qkv train reverse                   a small model learns to write strings backwards\n"
    "  qkv train reverse --help            the options of that task, with its own examples\n";

constexpr const char* kFooter =
    "  qkv train --resume RUN              continues after Ctrl-C, a crash or a power cut, to the same bits\n"
    "  qkv train --resume RUN --epochs 60  trains for more epochs\n"
    "  qkv train --config RUN --seed 2     the same settings as another run, but for one\n"
    "\nCtrl-C finishes the update, saves and says how to continue (exit code 130).\n"
    "A run folder holds config.json, metrics.jsonl, TensorBoard events, checkpoints/, result.json and report.html.\n";

struct TrainArguments {
  std::string out, resume;
  bool json = false;
};

/// The options of a run that may change when it is resumed.
bool can_change(const std::string& name) { return name == "epochs" || name == "steps"; }

void apply_changes(const Cli& cli, const Settings& given, RunFolder& run) {
  for (const Setting& s : given.all()) {
    if (!cli.given("--" + s.name)) continue;
    if (!can_change(s.name)) {
      throw ConfigError("--" + s.name + " cannot change when a run is resumed (only --epochs and --steps can); " +
                        run.path() + " keeps its own settings");
    }
    run.change(s.name, s.value);
  }
}

/// A comparison or study continues with its own command.
void refuse_groups(const std::string& path) {
  if (folder_kind(path) != FolderKind::other) require_kind(path, FolderKind::run);
}

RunFolder open_for_resume(const std::string& path, const std::string& task) {
  refuse_groups(path);
  RunFolder run = RunFolder::open(path);
  if (!task.empty() && task != run.spec().name) {
    throw ConfigError("run " + path + " is of task '" + run.spec().name + "', not '" + task + "'");
  }
  return run;
}

int train_in(RunFolder& run, Task& task, const TrainArguments& a) {
  std::FILE* const out = a.json ? stderr : stdout;
  run.lock();
  print_notes(task);
  ConsoleObserver console(run_label(run), opening_line(run.path(), run.spec(), run.settings()), out);
  const SessionResult result = run_session(run, task, &console);
  if (!result.training.interrupted) {
    const NoGrad no_grad;
    save_run_report(task, reported_run(run, task, result));
  }
  if (a.json) std::printf("%s\n", result_json(result, run.settings()).c_str());
  if (result.training.interrupted) {
    std::fprintf(stderr, "qkv: stopped after step %lld, saved; continue with: qkv train --resume %s\n",
                 static_cast<long long>(result.training.state.step), run.path().c_str());
    return 128 + console.signal();
  }
  if (!a.json) print_result(run, task, result);
  return 0;
}

}  // namespace

int run_train(const Arguments& given) {
  const Arguments arguments = with_config(given);
  const std::string name = task_argument(arguments);
  Cli cli("Trains a task's model, evaluates it and writes a report.", name.empty() ? "train" : "train " + name);
  TrainArguments a;
  std::string task_name;
  add_task(cli, name, task_name);
  cli.text("--out", a.out, "DIR", "the run's folder [runs/TASK-ATTENTION]").in("output");
  cli.flag("--json", a.json, "one JSON object with the result on standard output").in("output");
  cli.text("--resume", a.resume, "RUN", "continue this run");
  cli.footer(std::string("Examples:\n") + (name.empty() ? kExamples : find_task(name).examples) + kFooter);
  const std::string resumed = option_value(arguments, "--resume");
  Settings settings;
  if (!name.empty()) {
    settings = find_task(name).settings();
  } else if (!resumed.empty()) {
    refuse_groups(resumed);
    settings = RunFolder::open(resumed).spec().settings();
  }
  if (name.empty() && resumed.empty() && !wants_text(arguments)) {
    throw ConfigError("give a task to train: " + task_names() + "; see 'qkv train --help'");
  }
  cli.settings(settings);
  if (!cli.parse(arguments)) return 0;
  if (!a.resume.empty()) {
    if (!a.out.empty()) throw ConfigError("--out and --resume cannot be combined: a run continues in its own folder");
    RunFolder run = open_for_resume(a.resume, name);
    apply_changes(cli, settings, run);
    if (!run.simd().empty() && run.simd() != kernels::simd_target()) {
      std::fprintf(
          stderr, "qkv: this run began with %s arithmetic and continues with %s: equally good, but not the same bits\n",
          run.simd().c_str(), kernels::simd_target().c_str());
    }
    const auto task = run.make_task();
    return train_in(run, *task, a);
  }
  const TaskSpec& spec = find_task(name);
  take_from(settings);
  const std::string folder = a.out.empty() ? free_folder("runs/" + default_name(spec, settings)) : a.out;
  RunFolder::refuse_existing(folder);
  const auto task = make_new_task(spec, settings);
  RunFolder run = RunFolder::create(folder, spec, settings, *task);
  try {
    return train_in(run, *task, a);
  } catch (const ConfigError&) {
    remove_untrained(folder);
    throw;
  }
}

}  // namespace qkv::app
