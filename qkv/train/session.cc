// Training, evaluating and writing down what came of it.
#include "qkv/train/session.h"

#include <cmath>
#include <limits>

#include "qkv/base/error.h"
#include "qkv/core/autograd.h"
#include "qkv/io/json.h"
#include "qkv/train/run_report.h"
#include "qkv/view/text.h"

namespace qkv {
namespace {

bool is_share(const std::string& name) {
  return name.find("match") != std::string::npos || name.find("accuracy") != std::string::npos;
}

}  // namespace

std::unique_ptr<Task> make_new_task(const TaskSpec& spec, const Settings& settings) {
  const std::string& from = settings.get_text("from");
  if (from.empty()) return spec.make(settings, "");
  const RunFolder source = RunFolder::open(from);
  if (std::string(source.spec().name) != spec.name) {
    throw ConfigError("--from " + from + ": that run is of task '" + source.spec().name + "', not '" + spec.name + "'");
  }
  auto task = spec.make(settings, from);
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

SessionResult run_session(RunFolder& folder, Task& task, TrainObserver* observer) {
  SessionResult result;
  result.run = folder.path();
  result.task = folder.spec().name;
  result.label = folder.settings().has("attention") ? folder.settings().get_text("attention") : result.task;
  const std::vector<NamedParameter> model = parameters_of(task);
  for (const NamedParameter& p : model) result.parameters += p.value.numel();
  if (folder.checkpoints().empty()) load_start(task, folder.settings());
  {
    Trainer trainer(task, trainer_options(folder.settings()), &folder, observer);
    trainer.resume();
    result.training = trainer.run();
  }
  if (result.training.interrupted) return result;
  folder.load_weights(model);
  const NoGrad no_grad;
  result.evaluation = task.evaluate("");
  write_file_atomic(folder.path() + "/result.json", result_json(result, folder.settings()) + "\n");
  const std::vector<ReportedRun> runs{reported_run(folder, task, result)};
  save_report(folder.path() + "/report.html", runs, &task);
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
  return j.dump();
}

Spread spread_of(const std::vector<double>& values) {
  Spread s;
  if (values.empty()) return s;
  const auto n = static_cast<double>(values.size());
  for (const double v : values) s.mean += v / n;
  for (const double v : values) s.variance += (v - s.mean) * (v - s.mean) / n;
  return s;
}

std::string metric_label(const std::string& name) {
  std::string label = name;
  for (char& c : label) {
    if (c == '_') c = ' ';
  }
  return label;
}

std::string metric_text(const std::string& name, double value) {
  if (is_share(name)) return format_number(value * 100, 4) + "%";
  return format_number(value, 4);
}

std::string group_name(const Breakdown& b, size_t i) {
  return b.labels.empty() ? format_number(b.x[i], 9) : b.labels[i];
}

double metric_of(const Metrics& metrics, const std::string& name) {
  for (const auto& [key, value] : metrics) {
    if (key == name) return value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace qkv
