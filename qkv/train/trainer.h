// The trainer: drives any Task through its epochs, evaluates, saves, stops early; it knows no model.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "qkv/dist/tree_sum.h"
#include "qkv/optim/optimizer.h"
#include "qkv/optim/schedule.h"
#include "qkv/tasks/task.h"
#include "qkv/train/run_folder.h"

namespace qkv {

/// The numbers of process 0, on all of them.
void broadcast_tensors(Processes& processes, const std::vector<NamedParameter>& tensors);

struct TrainerOptions {
  uint64_t seed = 1;
  int64_t epochs = 1, steps = 0, accumulate = 1, parts = 1;
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

/// What one of the processes did.
struct ProcessShare {
  int64_t parts = 0;                // of updates
  double computed = 0, waited = 0;  // seconds spent on these, and on their sums with the others'
};

struct TrainResult {
  TrainState state;
  bool interrupted = false;          // by the observer; state.stopped says why a run ended otherwise
  double loss = 0;                   // training loss of the last evaluation
  Metrics validation;                // of the last evaluation
  Metrics best;                      // of the best
  std::optional<Metrics> averaged;   // of the averaged weights, when asked for
  std::vector<ProcessShare> shares;  // by rank
};

/// One training. The same (task, options) give the same bits with any number of threads and of processes, and also when
/// the run is interrupted anywhere and resumed from its folder.
class Trainer {
 public:
  /// `folder` null: nothing is written. `observer` may be null. With several processes each has a trainer; that of
  /// process 0 alone has the folder, and the observer of any may stop them all. Nothing is owned. Throws ConfigError
  /// when there are more processes than parts.
  Trainer(Task& task, const TrainerOptions& options, RunFolder* folder = nullptr, TrainObserver* observer = nullptr,
          Processes& processes = one_process());

  /// Continues from the newest checkpoint in the folder; from the beginning when there is none. For process 0 alone.
  /// Throws IoError on a checkpoint that is damaged or of another model, ConfigError without a folder.
  void resume();
  /// Trains to the end or until the observer stops it. Throws Error naming the step when the loss or a gradient is
  /// NaN or infinite (the last checkpoint stays), IoError when a checkpoint cannot be written.
  TrainResult run();
  /// run() in pieces, for those who must return to an event loop in between: begin(), advance() while it is true,
  /// finish(). A piece is one update with the evaluation and the checkpoint that are due after it.
  void begin();
  bool advance();
  TrainResult finish();

 private:
  struct Group {  // what the batches of one update, or a part of them, sum up to
    double loss = 0, scale = 1;
    int64_t targets = 0, tokens = 0;
  };
  bool at_end() const;
  bool stop_wanted();
  void open_log();
  void share_start();
  void share_weights();
  Group train_part(int64_t part);
  Group accumulate_gradients();
  void update();
  void evaluate();
  void checkpoint();
  void average_checkpoints(TrainResult& result);
  void load_average();
  void report(int64_t tokens);
  double seconds_here() const;
  /// Of all processes, which all ask.
  double cpu_seconds_here();
  [[noreturn]] void stop_on_nonfinite(const std::string& what, double value, int64_t step);
  bool better(double value) const;

  Task& task_;
  TrainerOptions options_;
  RunFolder* folder_;
  TrainObserver* observer_;
  Processes& processes_;
  std::vector<NamedParameter> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  TreeSum gradients_;
  Goal goal_;
  bool higher_is_better_;
  TrainState state_;
  std::unique_ptr<MetricsLog> log_;
  EvaluationRecord last_;
  Metrics best_metrics_;
  int64_t batches_ = 0;  // of the current epoch
  int64_t total_steps_ = 0, first_step_ = 0, tokens_here_ = 0;
  int64_t saved_step_ = -1;
  bool interrupted_ = false;
  bool writing_ = false;  // process 0 has a folder
  ProcessShare share_;
  double started_ = 0, seconds_before_ = 0;
  double cpu_started_ = 0, cpu_seconds_before_ = 0;
};

}  // namespace qkv
