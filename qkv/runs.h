// What the program trained, opened from C++: predictions and attention of a run's folder. Target qkv::runs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "qkv/core/parameter.h"
#include "qkv/core/tensor.h"
#include "qkv/tasks/prediction.h"

namespace qkv {

/// The attention of one layer while the model worked on an input.
struct RunAttention {
  std::string site;  // "self" of a model on its input; "encoder", "decoder", "cross"; "alignment", the heads together
  int64_t layer = 0;
  bool causal = false;                     // a query sees no key after it
  std::vector<std::string> queries, keys;  // the tokens of rows and columns
  Tensor weights;                          // [heads, queries, keys]; rows sum to 1
};

/// One input run through the model.
struct RunTrace {
  std::vector<std::string> source, target;  // tokens read, tokens written
  std::string output;
  std::vector<RunAttention> attention;  // empty for a model without any
};

/// A trained run. Movable; not for several threads at once.
class Run {
 public:
  Run(Run&&) noexcept;
  Run& operator=(Run&&) noexcept;
  ~Run();

  /// "reverse", "translate", "images", "knowledge" or "text".
  const std::string& task() const;
  /// The file the weights came from.
  const std::string& weights() const;
  /// Every setting of the run by name, as text.
  std::vector<std::pair<std::string, std::string>> settings() const;
  /// The model's parameters by name; the tensors share its memory.
  std::vector<NamedParameter> parameters();

  /// The best answer to one input: a line of text, a question, or for pictures a PNG's path, "data:image/png;base64,…"
  /// or "val:17". Throws ConfigError on an input or options the task cannot take.
  Prediction predict(const std::string& input, const DecodeOptions& options = {});
  /// options.n_best answers to each input, best first; inputs are computed together.
  std::vector<std::vector<Prediction>> predict(std::span<const std::string> inputs, const DecodeOptions& options = {});
  /// Where the model looks while it works on one input.
  RunTrace trace(const std::string& input);
  /// Inputs worth looking at, from the validation data.
  std::vector<std::string> examples(int64_t n);

 private:
  friend Run open_run(const std::string& path, const std::string& weights);
  struct Model;
  explicit Run(std::unique_ptr<Model> model);
  std::unique_ptr<Model> model_;
};

/// Opens a folder that `qkv train --out` made. `weights` is "best", "last", "average" or the step of a checkpoint; ""
/// is the average where it was better than the best, else the best. Throws IoError naming what cannot be read.
Run open_run(const std::string& path, const std::string& weights = "");

}  // namespace qkv
