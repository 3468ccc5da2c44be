// The state of a training, as state.json holds it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace qkv {

/// With weights and optimizer, everything needed to continue to the same bits.
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

/// The text of state.json.
std::string state_text(const TrainState& state);
/// Reads it; `file` is for messages. Throws JsonError on a number out of its range.
TrainState parse_state(std::string_view text, const std::string& file);

}  // namespace qkv
