// qkv.train and qkv.compare: the program's own trainings, watched by Python.
#include <pybind11/stl.h>

#include <chrono>
#include <filesystem>
#include <optional>

#include "errors.h"
#include "parts.h"
#include "qkv/app/run_commands.h"
#include "qkv/core/autograd.h"
#include "qkv/report/run_report.h"
#include "qkv/study/compare.h"
#include "rule.h"

namespace qkv::python {
namespace {

namespace py = pybind11;
using Release = py::gil_scoped_release;
using Pairs = std::vector<std::pair<std::string, std::string>>;

Settings settings_of(const TaskSpec& spec, const Pairs& given) {
  Settings settings = spec.settings();
  for (const auto& [name, value] : given) {
    if (!settings.has(name)) {
      std::vector<std::string> names;
      for (const Setting& s : settings.all()) names.push_back(s.name);
      throw ConfigError("task '" + std::string(spec.name) + "' has no setting '" + name +
                        "'; available: " + listed(names));
    }
    settings.set(name, value);
  }
  return settings;
}

// Tells a Python object of a training (with its methods start, step, evaluation), and asks Python whether Ctrl-C came.
// What Python raises ends the training after the update, saved.
class Watcher final : public TrainObserver {
 public:
  Watcher(py::object watcher, std::string label) : watcher_(std::move(watcher)), label_(std::move(label)) {}

  void on_step(const StepReport& r) override {
    last_ = r;
    const auto now = Clock::now();
    if (now - asked_ < std::chrono::milliseconds(100)) return;
    asked_ = now;
    call([&] {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      if (!watcher_.is_none()) {
        watcher_.attr("step")(label_, r.step, r.total_steps, r.epoch, r.epochs, r.loss, r.tokens_per_second,
                              r.seconds_left);
      }
    });
  }

  void on_evaluation(const EvaluationRecord& r) override {
    call([&] {
      if (watcher_.is_none()) return;
      py::dict validation;
      for (const auto& [name, value] : r.validation) validation[py::str(name)] = value;
      watcher_.attr("evaluation")(label_, r.epoch, last_.epochs, r.train_loss, validation);
    });
  }

  bool wants_stop() override { return raised_.has_value(); }

  // Raises what was raised while the training ran; of Ctrl-C the text says how to continue.
  void raise(const std::string& saved) {
    if (!raised_) return;
    if (raised_->matches(PyExc_KeyboardInterrupt)) {
      raised_.reset();
      PyErr_SetString(PyExc_KeyboardInterrupt, saved.c_str());
      throw py::error_already_set();
    }
    throw *std::exchange(raised_, std::nullopt);
  }

 private:
  using Clock = std::chrono::steady_clock;

  template <class Fn>
  void call(Fn&& fn) {
    const py::gil_scoped_acquire acquire;
    try {
      fn();
    } catch (py::error_already_set& e) {
      if (!raised_) raised_.emplace(e);
    }
  }

  py::object watcher_;
  std::string label_;
  StepReport last_;
  Clock::time_point asked_ = Clock::now();
  std::optional<py::error_already_set> raised_;
};

struct Trained {
  std::string folder, result;
};

RunFolder resumed(const std::string& path, const std::string& task, const Pairs& changes) {
  RunFolder run = RunFolder::open(path);
  if (!task.empty() && task != run.spec().name) {
    throw ConfigError("run " + path + " is of task '" + run.spec().name + "', not '" + task + "'");
  }
  for (const auto& [name, value] : changes) {
    if (name != "epochs" && name != "steps") {
      throw ConfigError("'" + name + "' cannot change when a run is resumed (only epochs and steps can); " + path +
                        " keeps its own settings");
    }
    run.change(name, value);
  }
  return run;
}

Trained train_in(RunFolder& run, Task& task, const py::object& watching) {
  Watcher watcher(watching, app::run_label(run));
  SessionResult result;
  {
    const Release release;
    run.lock();
    result = run_session(run, task, &watcher);
    if (!result.training.interrupted) {
      const NoGrad no_grad;
      save_run_report(task, reported_run(run, task, result));
    }
  }
  watcher.raise("stopped after step " + std::to_string(result.training.state.step) +
                ", saved; continue with: qkv.train(resume='" + run.path() + "')");
  return {run.path(), result_json(result, run.settings())};
}

py::tuple train(const py::object& task_name, const Pairs& given, const std::string& out, const std::string& resume,
                const py::object& watching) {
  const std::string name = text_of(task_name, "task");
  Trained done;
  if (!resume.empty()) {
    RunFolder run = resumed(resume, name, given);
    const auto task = run.make_task();
    done = train_in(run, *task, watching);
  } else {
    const TaskSpec& spec = find_task(name);
    Settings settings = settings_of(spec, given);
    take_from(settings);
    const std::string folder = out.empty() ? free_folder("runs/" + app::default_name(spec, settings)) : out;
    RunFolder::refuse_existing(folder);
    std::unique_ptr<Task> task;
    {
      const Release release;
      task = make_new_task(spec, settings);
    }
    RunFolder run = RunFolder::create(folder, spec, settings, *task);
    try {
      done = train_in(run, *task, watching);
    } catch (const ConfigError&) {
      remove_untrained(folder);
      throw;
    }
  }
  return py::make_tuple(done.folder, done.result);
}

class RunsWatcher final : public RunsObserver {
 public:
  explicit RunsWatcher(py::object watching) : watching_(std::move(watching)) {}

  TrainObserver* on_start(const std::string& label, const RunFolder&, Task&) override {
    const py::gil_scoped_acquire acquire;
    watcher_.emplace(watching_, label);
    return &*watcher_;
  }
  void on_result(const RunFolder& run, Task& task, const SessionResult& result) override {
    const NoGrad no_grad;
    reported_.push_back(reported_run(run, task, result));
    save_run_report(task, reported_.back());
  }
  void raise(const std::string& saved) {
    if (watcher_) watcher_->raise(saved);
  }
  const std::vector<ReportedRun>& reported() const { return reported_; }

 private:
  py::object watching_;
  std::optional<Watcher> watcher_;
  std::vector<ReportedRun> reported_;
};

py::tuple compare_in(const py::object& task_name, const py::list& mechanisms, const py::object& count,
                     const Pairs& given, const std::string& out, const py::object& watching) {
  const std::string name = text_of(task_name, "task");
  const int64_t seeds = whole_number_of(count, "seeds");
  CompareOptions o;
  o.spec = &find_task(name);
  o.settings = settings_of(*o.spec, given);
  for (const auto& m : mechanisms) o.mechanisms.push_back(text_of(py::reinterpret_borrow<py::object>(m), "attention"));
  if (o.mechanisms.empty()) throw ConfigError("compare: attention names no mechanism");
  o.seeds = seeds;
  if (seeds < 1 || seeds > 100) throw ConfigError("seeds must be from 1 to 100");
  check(o);
  o.folder = out.empty() ? free_folder("runs/compare-" + name) : out;
  // The record by which the program, too, continues it.
  app::Arguments arguments{name, "--attention"};
  std::string list;
  for (const std::string& m : o.mechanisms) list += (list.empty() ? "" : ",") + m;
  arguments.push_back(list);
  arguments.insert(arguments.end(), {"--seeds", std::to_string(seeds)});
  for (const auto& [key, value] : given) {
    const bool flag = value == "true" || value == "false";
    arguments.push_back((value == "false" ? "--no-" : "--") + key);
    if (!flag) arguments.push_back(value);
  }
  const bool fresh = !std::filesystem::exists(o.folder + "/compare.json");
  if (fresh) RunFolder::refuse_existing(o.folder);
  RunsWatcher watcher(watching);
  Comparison comparison;
  {
    const Release release;
    app::work_in({o.folder, "compare.json", arguments, fresh}, [&] { comparison = compare(o, &watcher); });
    if (!comparison.interrupted) save_comparison_report(o.folder, watcher.reported(), seeds);
  }
  watcher.raise("stopped, saved; the same call with out='" + o.folder + "' continues");
  return py::make_tuple(o.folder, comparison_json(o, comparison));
}

py::list settings_list(const Settings& settings) {
  py::list all;
  for (const Setting& s : settings.all()) all.append(py::make_tuple(s.name, s.value, s.help));
  return all;
}

}  // namespace

void add_training(py::module_& m) {
  m.def("train", train);
  m.def("compare", compare_in);
  m.def("task_settings", [](const std::string& name) { return settings_list(find_task(name).settings()); });
  m.def("tasks", [] {
    std::vector<std::pair<std::string, std::string>> all;
    for (const TaskSpec& spec : task_table()) all.emplace_back(spec.name, spec.summary);
    return all;
  });
}

}  // namespace qkv::python
