// One training from start or checkpoint to result.json and report.html.
#pragma once

#include <string>
#include <vector>

#include "qkv/train/trainer.h"

namespace qkv {

/// What a run came to.
struct SessionResult {
  std::string run;          // its folder
  std::string task, label;  // label: the mechanism, or the task's name where there is no choice of one
  int64_t parameters = 0;
  TrainResult training;
  Evaluation evaluation;  // of the weights the run settled on; empty when interrupted
};

/// A task for a new run: with the vocabulary of the run that the setting "from" names, where it names one.
/// Throws IoError, or ConfigError when that run is of another task.
std::unique_ptr<Task> make_new_task(const TaskSpec& spec, const Settings& settings);
/// The weights of the run that "from" names into the task; nothing when it is empty. Throws IoError naming both runs
/// when their models differ.
void load_start(Task& task, const Settings& settings);

/// Trains in the folder (from its newest checkpoint when there is one, else as load_start says), then evaluates the
/// weights load_weights() picks and writes result.json and report.html. Interrupted, it only trains. Throws what
/// Trainer::run does.
SessionResult run_session(RunFolder& folder, Task& task, TrainObserver* observer = nullptr);

/// One JSON object on one line: run, task, attention, seed, parameters, epochs, steps, stopped, train_loss, every
/// figure of the evaluation, every breakdown as an object from group to figure, seconds.
std::string result_json(const SessionResult& result, const Settings& settings);

/// Mean and variance of a curve over the evaluations of a run.
struct Spread {
  double mean = 0, variance = 0;
};
Spread spread_of(const std::vector<double>& values);

/// "exact_match" → "exact match"; "0.9915" → "99.15%" for figures between 0 and 1 that are shares.
std::string metric_label(const std::string& name);
std::string metric_text(const std::string& name, double value);
/// Group i of a breakdown as it is shown: its label, or its number.
std::string group_name(const Breakdown& breakdown, size_t i);
/// The figure of that name, or NaN.
double metric_of(const Metrics& metrics, const std::string& name);

}  // namespace qkv
