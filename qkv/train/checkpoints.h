// The checkpoints of a run: each visible complete or not at all, with checksums, read without trust.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qkv/optim/optimizer.h"
#include "qkv/train/train_state.h"

namespace qkv {

/// RUN/checkpoints/: a folder for each saved step with model.safetensors, optimizer.safetensors, state.json and
/// CHECKSUMS, and perhaps the average of some.
class Checkpoints {
 public:
  explicit Checkpoints(std::string run) : run_(std::move(run)) {}

  /// Steps of the checkpoints, ascending.
  std::vector<int64_t> checkpoints() const;
  std::string checkpoint_path(int64_t step) const;
  /// The size of the file with the newest weights; 0: there is none.
  int64_t weight_bytes() const;
  /// Writes checkpoints/STEP in one visible step, then prunes.
  void save(const TrainState& state, const std::vector<NamedParameter>& model, const Optimizer& optimizer,
            int64_t keep) const;
  /// Removes all but the newest `keep` and the best; what cannot be removed now stays for the next time.
  void prune(const TrainState& state, int64_t keep) const;
  /// Weights and optimizer of one checkpoint. Throws IoError on damage, weights that are not finite or another model.
  TrainState load(int64_t step, const std::vector<NamedParameter>& model, Optimizer& optimizer) const;
  TrainState load_state(int64_t step) const;

  /// The weights of "best", "last", "average" or a step's number; "" is the average where it was better than the
  /// best, else the best, else the last. Returns the file they came from. Throws IoError, ConfigError.
  std::string load_weights(const std::vector<NamedParameter>& model, const std::string& which = "") const;
  /// checkpoints/average: the mean of the last checkpoints, and whether load_weights gives it by default.
  void save_average(const std::vector<NamedParameter>& model, bool preferred) const;
  void remove_average() const;

 private:
  bool prefers_average() const;
  std::string average_path() const { return run_ + "/checkpoints/average"; }

  std::string run_;
};

/// What a file of weights that load_weights() found is called: a step's number, or "average".
std::string weights_name(const std::string& file);

}  // namespace qkv
