// metrics.jsonl: one JSON object per line, written by a training and read by everybody; and its TensorBoard twin.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/io/file.h"
#include "qkv/io/json_fwd.h"
#include "qkv/io/tensorboard.h"
#include "qkv/tasks/task.h"

namespace qkv {

/// One evaluation.
struct EvaluationRecord {
  int64_t step = 0, epoch = 0;  // epochs finished
  double train_loss = 0;        // mean over the targets since the last evaluation
  double lr = 0, seconds = 0, cpu_seconds = 0, tokens_per_second = 0;
  Metrics validation;
};

/// One update.
struct StepRecord {
  int64_t step = 0;
  double loss = 0, lr = 0, gradient_norm = 0;
};

/// A stretch of the log, for those who follow it while it grows.
struct MetricsPart {
  std::vector<Json> records;  // of the whole lines in it; damaged ones are left out
  int64_t next = 0;           // byte to continue from
  bool more = false;          // whether the next part is there by now
};

/// metrics.jsonl and the TensorBoard event file, both cut back to what a checkpoint knew. A figure that is not finite
/// is "Infinity", "-Infinity" or "NaN", since JSON has no such numbers.
class MetricsLog {
 public:
  MetricsLog(const std::string& folder, uint64_t keep_metrics, uint64_t keep_events);
  void add(const EvaluationRecord& record);
  void add(const StepRecord& record);
  void sync();
  uint64_t metrics_bytes() const { return metrics_.size(); }
  uint64_t events_bytes() const { return events_.size(); }

  /// The evaluations in the first `bytes` of the log; a last line without its end does not count.
  /// Throws IoError naming the byte where a damaged line begins.
  static std::vector<EvaluationRecord> evaluations(const std::string& folder, uint64_t bytes);
  /// The same of text; `file` is for messages.
  static std::vector<EvaluationRecord> parse(std::string_view text, const std::string& file);
  /// At most a mebibyte from byte `from` on; from the beginning when the log is shorter, for then the run began again.
  static MetricsPart part(const std::string& folder, int64_t from);

 private:
  AppendFile metrics_;
  EventFile events_;
};

}  // namespace qkv
