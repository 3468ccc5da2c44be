// Recordings: inputs that a model was given and what its attention was computed from, where the model itself cannot
// run.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "qkv/io/safetensors.h"
#include "qkv/tasks/task.h"

namespace qkv {

/// The file of a run's folder that holds them; a run that has one is shown from it.
inline constexpr const char* kRecordings = "recordings.safetensors";

/// Traces these inputs and writes the recordings: tokens, output and candidates, and of every layer q, k, v and the
/// rule of its scores (weights alone where nothing is behind them). `names`: what the inputs are called, one each;
/// `weights`: the checkpoint they went through. Throws what the model throws on an input, IoError.
void write_recordings(const std::string& file, Traceable& model, std::span<const std::string> inputs,
                      std::span<const std::string> names, const std::string& weights);

/// A model that answers from its recordings: the same maps and numbers, for the inputs that were recorded.
class Recordings final : public Traceable {
 public:
  /// Throws IoError when the file cannot be read or does not fit together.
  static Recordings load(const std::string& file) { return Recordings(SafetensorsFile::load(file)); }
  /// The same of a file that was read.
  explicit Recordings(SafetensorsFile file);

  const std::string& weights() const { return weights_; }
  int64_t bytes() const { return bytes_; }
  /// Throws ConfigError for an input that was not recorded.
  TracedExample trace(const std::string& input) override;
  std::vector<std::string> examples(int64_t n) override;

 private:
  struct Recorded {
    std::string input;
    TracedExample example;
  };
  std::string weights_;
  int64_t bytes_ = 0;
  std::vector<Recorded> all_;
};

}  // namespace qkv
