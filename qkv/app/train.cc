// qkv train: trains a task's model in a run folder, or continues one.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <optional>

#include "qkv/app/cli.h"
#include "qkv/app/console.h"
#include "qkv/app/run_commands.h"
#include "qkv/app/together.h"
#include "qkv/base/error.h"
#include "qkv/core/autograd.h"
#include "qkv/kernels/simd_target.h"
#include "qkv/report/run_report.h"
#include "qkv/train/shared_run.h"

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

/// The run that the arguments ask for, locked, with its task.
struct Prepared {
  RunFolder run;
  std::unique_ptr<Task> task;
  bool json = false, fresh = true;
};

Prepared resumed_run(const Cli& cli, const TrainArguments& a, const std::string& task_name, const Settings& given) {
  if (!a.out.empty()) throw ConfigError("--out and --resume cannot be combined: a run continues in its own folder");
  RunFolder run = open_for_resume(a.resume, task_name);
  apply_changes(cli, given, run);
  if (!run.simd().empty() && run.simd() != kernels::simd_target()) {
    std::fprintf(stderr,
                 "qkv: this run began with %s arithmetic and continues with %s: equally good, but not the same bits\n",
                 run.simd().c_str(), kernels::simd_target().c_str());
  }
  auto task = run.make_task();
  task->prepare();
  return {std::move(run), std::move(task), a.json, false};
}

/// Reads the arguments and makes or opens the run for this many processes; nothing where only help was asked for.
std::optional<Prepared> prepared(const Arguments& given, int processes) {
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
  const auto given_last = [&](const char* option) { return !arguments.empty() && arguments.back() == option; };
  const bool incomplete = given_last("--resume") || given_last("--config");  // which the parser says
  if (name.empty() && resumed.empty() && !incomplete && !wants_text(arguments)) {
    for (const std::string& word : arguments) refuse_gpu(word);
    throw ConfigError("give a task to train: " + task_names() + "; see 'qkv train --help'");
  }
  cli.settings(settings);
  if (const std::string several = option_value(arguments, "--attention"); several.find(',') != std::string::npos) {
    throw ConfigError("--attention: a training has one mechanism; several are compared by 'qkv compare " + name +
                      " --attention " + several + "'");
  }
  if (!cli.parse(arguments)) return std::nullopt;
  std::optional<Prepared> p;
  if (!a.resume.empty()) {
    p = resumed_run(cli, a, name, settings);
    check_parts(p->run.settings().get_integer("parts"), processes);
  } else {
    const TaskSpec& spec = find_task(name);
    take_from(settings);
    if (!cli.given("--parts")) {
      settings.set("parts", std::to_string(std::bit_ceil(static_cast<unsigned>(processes))));
    }
    check_parts(settings.get_integer("parts"), processes);
    const std::string folder = a.out.empty() ? free_folder("runs/" + default_name(spec, settings)) : a.out;
    RunFolder::refuse_existing(folder);
    auto task = make_new_task(spec, settings);
    task->prepare();
    RunFolder run = RunFolder::create(folder, spec, settings, *task);
    p = Prepared{std::move(run), std::move(task), a.json, true};
  }
  p->run.lock();
  print_notes(*p->task);
  return p;
}

void print_shares(const std::vector<ProcessShare>& shares, std::FILE* out) {
  if (shares.size() < 2) return;
  std::string parts;
  double computed = 0, waited = 0;
  for (const ProcessShare& s : shares) {
    parts += (parts.empty() ? "" : ", ") + std::to_string(s.parts);
    computed += s.computed;
    waited += s.waited;
  }
  std::fprintf(out, "\nparts computed by each process: %s; %.0f%% of the time spent on sums and waiting\n",
               parts.c_str(), 100 * waited / std::max(computed + waited, 1e-9));
}

int train_in(Crew& crew, Prepared& p) {
  Processes& processes = crew.processes();
  RunFolder& run = p.run;
  std::FILE* const out = p.json ? stderr : stdout;
  crew.continue_with("qkv train --resume " + run.path());
  share_run(processes, run, *p.task);
  ConsoleObserver console(run_label(run), opening_line(run.path(), run.spec(), run.settings(), processes.size()), out);
  const SessionResult result = run_session(run, *p.task, &console, processes);
  const bool interrupted = result.training.interrupted;
  agree(processes, [&] {
    if (!interrupted) {
      const NoGrad no_grad;
      save_run_report(*p.task, reported_run(run, *p.task, result));
    }
    if (!interrupted && !console.trained()) {
      std::fprintf(stderr, "qkv: this run had ended; for more epochs: qkv train --resume %s --epochs N\n",
                   run.path().c_str());
    }
    if (p.json) std::printf("%s\n", result_json(result, run.settings()).c_str());
    if (interrupted) {
      std::fprintf(stderr, "qkv: stopped after step %lld, saved; continue with: qkv train --resume %s\n",
                   static_cast<long long>(result.training.state.step), run.path().c_str());
    } else if (!p.json) {
      print_result(run, *p.task, result);
    }
    print_shares(result.training.shares, out);
  });
  return exit_code(processes, interrupted, console.signal());
}

int train_first(Crew& crew, const Arguments& given) {
  Processes& processes = crew.processes();
  std::optional<Prepared> p;
  agree(processes, [&] { p = prepared(given, processes.size()); });
  broadcast_text(processes, p ? "train" : "");
  if (!p) return 0;
  try {
    return train_in(crew, *p);
  } catch (const ConfigError&) {
    if (p->fresh) remove_untrained(p->run.path());
    throw;
  }
}

/// The other processes know nothing but what the first tells them.
int train_with_first(Crew& crew) {
  Processes& processes = crew.processes();
  agree(processes, [] {});
  if (broadcast_text(processes, "").empty()) return 0;
  const SharedRun run = receive_run(processes);
  crew.continue_with("qkv train --resume " + run.path);
  SilentObserver observer;
  const SessionResult result = join_session(run.settings, *run.task, &observer, processes);
  agree(processes, [] {});
  return exit_code(processes, result.training.interrupted, observer.signal());
}

}  // namespace

int run_train(const Arguments& given) {
  return together(given, [&](Crew& crew) { return crew.first() ? train_first(crew, given) : train_with_first(crew); });
}

}  // namespace qkv::app
