// Training, evaluating and writing down the result.
#include "qkv/train/session.h"

#include <cmath>
#include <filesystem>

#include "qkv/base/error.h"
#include "qkv/core/autograd.h"
#include "qkv/figures/number.h"
#include "qkv/io/json.h"
#include "qkv/tasks/recordings.h"

namespace qkv {
namespace {

/// run_session without its result.json.
SessionResult train_and_evaluate(const SessionPlace& place, Task& task, TrainObserver* observer) {
  Session session(place, task, observer);
  while (session.advance()) {
  }
  return session.finish();
}

}  // namespace

Session::Session(const SessionPlace& place, Task& task, TrainObserver* observer)
    : place_(place), task_(task), model_(parameters_of(task)) {
  RunFolder* const folder = place.folder;
  agree(place.processes, [&] {
    if (folder != nullptr && folder->checkpoints().empty()) load_start(task, place.settings);
    trainer_ = std::make_unique<Trainer>(task, trainer_options(place.settings), folder, observer, place.processes);
    if (folder != nullptr) trainer_->resume();
  });
  task_.work_with(place.processes);
  try {
    trainer_->begin();
  } catch (...) {
    task_.work_with(one_process());
    throw;
  }
}

Session::~Session() { task_.work_with(one_process()); }

bool Session::advance() { return trainer_->advance(); }

SessionResult Session::finish() {
  RunFolder* const folder = place_.folder;
  SessionResult result;
  if (folder != nullptr) result.run = folder->path(), result.task = folder->spec().name;
  result.label = place_.settings.has("attention") ? place_.settings.get_text("attention") : result.task;
  for (const NamedParameter& p : model_) result.parameters += p.value.numel();
  result.training = trainer_->finish();
  trainer_.reset();  // with the memory of its optimizer
  if (result.training.interrupted) return result;
  agree(place_.processes, [&] {
    if (folder != nullptr) folder->load_weights(model_);
  });
  broadcast_tensors(place_.processes, model_);
  const NoGrad no_grad;
  result.evaluation = task_.evaluate("");
  return result;
}

void write_result(const RunFolder& folder, const SessionResult& result) {
  if (result.training.interrupted) return;
  write_file_atomic(folder.path() + "/result.json", result_json(result, folder.settings()) + "\n");
}

void take_from(Settings& settings) {
  if (settings.get_text("from").empty()) return;
  const RunFolder source = RunFolder::open(settings.get_text("from"));
  const Settings training = training_settings(), asked = settings;
  const auto said = [&](const std::string& name) {
    for (const Setting& s : asked.all()) {
      if (s.name == name) return s.given;
    }
    return true;  // no setting of this task
  };
  for (const Setting& s : source.settings().all()) {
    if (!training.has(s.name) && !said(s.name)) settings.set(s.name, s.value);
  }
}

std::unique_ptr<Task> make_new_task(const TaskSpec& spec, const Settings& settings) {
  const std::string& from = settings.get_text("from");
  if (from.empty()) return spec.make(settings, "");
  const RunFolder source = RunFolder::open(from);
  if (std::string(source.spec().name) != spec.name) {
    throw ConfigError("--from " + from + ": that run is of task '" + source.spec().name + "', not '" + spec.name + "'");
  }
  auto task = source.make_task(settings);
  load_start(*task, settings);
  return task;
}

void load_start(Task& task, const Settings& settings) {
  const std::string& from = settings.get_text("from");
  if (from.empty()) return;
  const RunFolder source = RunFolder::open(from);
  try {
    source.load_weights(parameters_of(task), settings.get_text("from-weights"));
  } catch (const ShapeError& e) {
    throw IoError("cannot start from " + from + ": its model is another one: " + e.what());
  } catch (const IoError& e) {
    throw IoError("cannot start from " + from + ": " + e.what());
  }
}

TrainerOptions trainer_options(const Settings& s) {
  TrainerOptions o;
  o.seed = static_cast<uint64_t>(s.get_integer("seed"));
  o.epochs = s.get_integer("epochs");
  o.steps = s.get_integer("steps");
  o.accumulate = s.get_integer("accumulate");
  o.parts = s.get_integer("parts");
  o.optimizer = s.get<OptimizerKind>("optimizer");
  o.lr = s.get_number("lr");
  o.weight_decay = s.get_number("weight-decay");
  o.momentum = s.get_number("momentum");
  o.clip = s.get_number("clip");
  o.schedule = s.get<ScheduleKind>("schedule");
  o.warmup = s.get_integer("warmup");
  o.final_lr = s.get_number("final-lr");
  o.eval_every = s.get_integer("eval-every");
  o.checkpoint_every = s.get_integer("checkpoint-every");
  o.keep = s.get_integer("keep");
  o.average = s.get_integer("average");
  o.patience = s.get_integer("patience");
  o.log_every = s.get_integer("log-every");
  return o;
}

SessionResult run_session(RunFolder& folder, Task& task, TrainObserver* observer, Processes& processes) {
  SessionResult result = train_and_evaluate({&folder, folder.settings(), processes}, task, observer);
  agree(processes, [&] { write_result(folder, result); });
  return result;
}

SessionResult join_session(const Settings& settings, Task& task, TrainObserver* observer, Processes& processes) {
  SessionResult result = train_and_evaluate({nullptr, settings, processes}, task, observer);
  agree(processes, [] {});
  return result;
}

OpenedRun open_or_create(const std::string& path, const TaskSpec& spec, const Settings& settings) {
  if (std::error_code error; std::filesystem::exists(path + "/config.json", error)) {
    RunFolder run = RunFolder::open(path);
    auto task = run.make_task();
    return {std::move(run), std::move(task), ""};
  }
  auto task = make_new_task(spec, settings);
  RunFolder run = RunFolder::create(path, spec, settings, *task);
  return {std::move(run), std::move(task), ""};
}

OpenedRun load_run(const std::string& path, const std::string& weights,
                   const std::vector<std::pair<std::string, std::string>>& changes) {
  RunFolder folder = RunFolder::open(path);
  if (std::error_code error; std::filesystem::exists(path + "/" + kRecordings, error)) {
    throw ConfigError("run " + path + " holds recordings and no model: 'qkv serve' shows them");
  }
  Settings settings = folder.settings();
  for (const auto& [name, value] : changes) {
    if (!settings.has(name)) {
      throw ConfigError("task '" + std::string(folder.spec().name) + "' has no option --" + name);
    }
    settings.set(name, value);
  }
  auto task = folder.make_task(settings);
  const std::string file = folder.load_weights(parameters_of(*task), weights);
  return {std::move(folder), std::move(task), file};
}

SessionResult run_watched(OpenedRun& run, const std::string& label, RunsObserver* observer) {
  run.folder.lock();
  TrainObserver* const watching = observer != nullptr ? observer->on_start(label, run.folder, *run.task) : nullptr;
  SessionResult result = train_and_evaluate({&run.folder, run.folder.settings(), one_process()}, *run.task, watching);
  if (observer != nullptr && !result.training.interrupted) observer->on_result(run.folder, *run.task, result);
  write_result(run.folder, result);  // last: it says that nothing is left to do here
  return result;
}

std::string result_json(const SessionResult& r, const Settings& settings) {
  Json j{{"run", r.run}, {"task", r.task}};
  if (settings.has("attention")) j["attention"] = settings.get_text("attention");
  j["seed"] = settings.get_integer("seed");
  j["parameters"] = r.parameters;
  j["epochs"] = r.training.state.epoch;
  j["steps"] = r.training.state.step;
  j["stopped"] = r.training.interrupted ? "interrupted" : r.training.state.stopped;
  j["train_loss"] = r.training.loss;
  for (const auto& [name, value] : r.evaluation.metrics) j[name] = figure_json(value);
  for (const Breakdown& b : r.evaluation.breakdowns) {
    Json groups = Json::object();
    for (size_t i = 0; i < b.x.size(); ++i) groups[group_name(b, i)] = b.y[i];
    j[b.name] = groups;
    if (b.trained_to > 0) j["trained_to_" + b.by] = b.trained_to;
  }
  j["cpu_seconds"] = std::round(r.training.state.cpu_seconds * 1000) / 1000;
  j["seconds"] = std::round(r.training.state.seconds * 1000) / 1000;
  return json_text(j);
}

std::string group_name(const Breakdown& b, size_t i) {
  return b.labels.empty() ? format_number(b.x[i], 9) : b.labels[i];
}

}  // namespace qkv
