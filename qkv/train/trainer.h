// The trainer: drives any Task through its epochs, evaluates, saves, stops early; it knows no model.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "qkv/optim/optimizer.h"
#include "qkv/optim/schedule.h"
#include "qkv/tasks/task.h"
#include "qkv/train/run_folder.h"

namespace qkv {

struct TrainerOptions {
  uint64_t seed = 1;
  int64_t epochs = 1, steps = 0, accumulate = 1;
  OptimizerKind optimizer = OptimizerKind::adamw;
  double lr = 1e-3, weight_decay = 0.01, momentum = 0.9, clip = 1;
  ScheduleKind schedule = ScheduleKind::constant;
  int64_t warmup = 0;
  double final_lr = 0;
  int64_t eval_every = 0, checkpoint_every = 0, keep = 2, average = 0, patience = 0, log_every = 20;
};

/// One update, for progress bars.
struct StepReport {
  int64_t step = 0, total_steps = 0;  // of this run; total is an upper bound
  int64_t epoch = 0, epochs = 0;      // from 1
  double loss = 0;                    // mean over the epoch so far
  double tokens_per_second = 0, seconds_left = 0;
};

/// Watches a run and may end it; every call comes from the thread that trains.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void on_step(const StepReport& report) { static_cast<void>(report); }
  virtual void on_evaluation(const EvaluationRecord& record) { static_cast<void>(record); }
  /// True ends training after this update: it is saved and can be resumed.
  virtual bool wants_stop() { return false; }
};

struct TrainResult {
  TrainState state;
  bool interrupted = false;         // by the observer; state.stopped says why a run ended otherwise
  double loss = 0;                  // training loss of the last evaluation
  Metrics validation;               // of the last evaluation
  Metrics best;                     // of the best
  std::optional<Metrics> averaged;  // of the averaged weights, when asked for
};

/// One training. The same (task, options) give the same bits with any number of threads, and also when the run is
/// interrupted anywhere and resumed from its folder.
class Trainer {
 public:
  /// `folder` null: nothing is written. `observer` may be null. Neither is owned.
  Trainer(Task& task, const TrainerOptions& options, RunFolder* folder = nullptr, TrainObserver* observer = nullptr);

  /// Continues from the newest checkpoint in the folder; from the beginning when there is none.
  /// Throws IoError on a checkpoint that is damaged or of another model, ConfigError without a folder.
  void resume();
  /// Trains to the end or until the observer stops it. Throws Error naming the step when the loss or a gradient is
  /// NaN or infinite (the last checkpoint stays), IoError when a checkpoint cannot be written.
  TrainResult run();

 private:
  struct Group {  // what the batches of one update sum up to
    double loss = 0, scale = 1;
    int64_t targets = 0, tokens = 0;
  };
  bool at_end() const;
  Group accumulate_gradients();
  void update();
  void evaluate();
  void checkpoint();
  void average_checkpoints(TrainResult& result);
  void report(int64_t tokens);
  double seconds_here() const;
  double cpu_seconds_here() const;
  [[noreturn]] void stop_on_nonfinite(const std::string& what, double value, int64_t step) const;
  bool better(double value) const;

  Task& task_;
  TrainerOptions options_;
  RunFolder* folder_;
  TrainObserver* observer_;
  std::vector<NamedParameter> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  Goal goal_;
  bool higher_is_better_;
  TrainState state_;
  std::unique_ptr<MetricsLog> log_;
  EvaluationRecord last_;
  Metrics best_metrics_;
  int64_t batches_ = 0;  // of the current epoch
  int64_t total_steps_ = 0, first_step_ = 0, tokens_here_ = 0;
  int64_t saved_step_ = -1;
  double started_ = 0, seconds_before_ = 0;
  double cpu_started_ = 0, cpu_seconds_before_ = 0;
};

}  // namespace qkv
