// A run's folder: configuration, assets, metrics and checkpoints, each visible complete or not at all.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "qkv/io/file.h"
#include "qkv/io/tensorboard.h"
#include "qkv/optim/optimizer.h"
#include "qkv/tasks/task.h"

namespace qkv {

/// Where a training stands: with weights and optimizer, everything needed to go on to the same bits.
struct TrainState {
  uint64_t seed = 0;  // with `step`, the whole state of the random generator: every draw is counter-based
  int64_t step = 0, epoch = 0, batch = 0;  // updates done; next batch to read
  int64_t tokens = 0;
  double seconds = 0;        // spent, over all sessions
  double cpu_seconds = 0;    // of all threads together: what the run cost however busy the machine was
  double loss_sum = 0;       // Σ loss·targets since the last evaluation
  int64_t loss_targets = 0;  //
  int64_t evaluations = 0, evaluations_since_best = 0;
  int64_t best_step = -1;  // -1: none yet
  double best = 0;         // the goal's figure there
  std::string stopped;     // why training is over; empty while it is not
  uint64_t metrics_bytes = 0, events_bytes = 0;
};

/// One evaluation as metrics.jsonl holds it.
struct EvaluationRecord {
  int64_t step = 0, epoch = 0;  // epochs finished
  double train_loss = 0;        // mean over the targets since the last evaluation
  double lr = 0, seconds = 0, cpu_seconds = 0, tokens_per_second = 0;
  Metrics validation;
};

/// One update as metrics.jsonl holds it.
struct StepRecord {
  int64_t step = 0;
  double loss = 0, lr = 0, gradient_norm = 0;
};

/// metrics.jsonl and the TensorBoard event file, both cut back to what a checkpoint knew.
class MetricsLog {
 public:
  MetricsLog(const std::string& folder, uint64_t keep_metrics, uint64_t keep_events);
  void add(const EvaluationRecord& record);
  void add(const StepRecord& record);
  void sync();
  uint64_t metrics_bytes() const { return metrics_.size(); }
  uint64_t events_bytes() const { return events_.size(); }

 private:
  AppendFile metrics_;
  EventFile events_;
};

using FindTask = const TaskSpec& (*)(const std::string& name);

/// runs/NAME/. Creating, opening, locking, and the list of checkpoints.
class RunFolder {
 public:
  /// Makes the folder with config.json and what save_assets writes. Throws IoError when something is already there.
  static RunFolder create(const std::string& path, const TaskSpec& spec, const Settings& settings, const Task& assets);
  /// Throws the IoError of create() before any work is done.
  static void refuse_existing(const std::string& path);
  /// Throws IoError when there is no run, or one that this program cannot read.
  static RunFolder open(const std::string& path, FindTask find = find_task);

  const std::string& path() const { return path_; }
  const TaskSpec& spec() const { return *spec_; }
  const Settings& settings() const { return settings_; }
  /// The SIMD target the run began with: another one gives results as good, but not the same bits.
  const std::string& simd() const { return simd_; }
  /// The run's task with its assets; weights are fresh.
  std::unique_ptr<Task> make_task() const { return spec_->make(settings_, path_); }
  /// Changes one setting of the stored configuration (resuming with more epochs).
  void change(const std::string& name, const std::string& value);

  /// Refuses a second process that trains here (until this object goes), and removes what a killed one left.
  void lock();

  /// Steps of the checkpoints, ascending.
  std::vector<int64_t> checkpoints() const;
  std::string checkpoint_path(int64_t step) const;
  /// Writes checkpoints/STEP in one visible step, then removes all but the newest `keep` and the best.
  void save(const TrainState& state, const std::vector<NamedParameter>& model, const Optimizer& optimizer,
            int64_t keep) const;
  /// Weights and optimizer of one checkpoint. Throws IoError on damage or another model.
  TrainState load(int64_t step, const std::vector<NamedParameter>& model, Optimizer& optimizer) const;
  TrainState load_state(int64_t step) const;

  /// The weights of "best", "last", "average" or a step's number; "" is the average where it was better than the
  /// best, else the best, else the last. Returns the file they came from. Throws IoError, ConfigError.
  std::string load_weights(const std::vector<NamedParameter>& model, const std::string& which = "") const;
  /// checkpoints/average: the mean of the last checkpoints, and whether it is what load_weights gives unasked.
  void save_average(const std::vector<NamedParameter>& model, bool preferred) const;
  void remove_average() const;

  std::vector<EvaluationRecord> history() const;

 private:
  RunFolder(std::string path, const TaskSpec* spec, Settings settings, std::string simd);
  struct Lock;
  bool prefers_average() const;
  std::string average_path() const { return path_ + "/checkpoints/average"; }

  std::string path_;
  const TaskSpec* spec_;
  Settings settings_;
  std::string simd_;
  std::shared_ptr<Lock> lock_;
};

/// All parameters of a task.
std::vector<NamedParameter> parameters_of(Task& task);

/// A free folder name: `wanted`, or wanted-2, wanted-3, … when taken.
std::string free_folder(const std::string& wanted);

}  // namespace qkv
