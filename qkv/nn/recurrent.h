// LSTM and GRU modules: several layers, one or two directions, over ragged batches.
#pragma once

#include <vector>

#include "qkv/nn/layers.h"
#include "qkv/ops/recurrent.h"

namespace qkv {

/// Sizes and choices of a Recurrent.
struct RecurrentConfig {
  CellKind cell = CellKind::lstm;
  int64_t input = 0, hidden = 0, layers = 1;
  bool bidirectional = false;
  double dropout = 0;  // of each layer's output but the last one's
};

/// One layer's parameters in one direction: PyTorch's names, sizes and gate order. They start uniform in ±1/√H, with
/// an LSTM's forget gate at bias 1 so that it remembers before it has learnt to.
RecurrentWeights recurrent_weights(CellKind cell, int64_t input, int64_t hidden, Rng& rng);
/// Sees them as weight_ih_lN, weight_hh_lN, bias_ih_lN and bias_hh_lN, with `prefix` before and `suffix` after.
void visit_weights(Visitor& see, const std::string& prefix, const std::string& suffix, RecurrentWeights& weights);

/// What all layers together give.
struct RecurrentOutput {
  Tensor out;                           // [T, D·H], D = 2 when bidirectional: [forward | backward]
  std::vector<RecurrentState> forward;  // the last state of each layer, [B, H]
  std::vector<RecurrentState> backward;
};

/// Several layers of one kind of cell.
class Recurrent {
 public:
  Recurrent() = default;
  /// Throws ConfigError on sizes below 1 or a dropout outside [0, 1).
  Recurrent(const RecurrentConfig& config, Rng& rng);

  /// x [T, I] packed as `batch` says, or rows of a table. `initial` holds one state per layer (forward direction), or
  /// is empty for zeros.
  RecurrentOutput forward(const RecurrentInput& x, const Ragged& batch, Context& ctx,
                          const std::vector<RecurrentState>& initial = {}) const;
  void visit(Visitor& see);

  const RecurrentConfig& config() const { return config_; }
  int64_t width() const { return config_.hidden * (config_.bidirectional ? 2 : 1); }
  const std::vector<RecurrentWeights>& weights() const { return forward_; }

 private:
  RecurrentConfig config_;
  std::vector<RecurrentWeights> forward_, backward_;
  Dropout dropout_;
};

/// Layers of LSTM cells.
class Lstm : public Recurrent {
 public:
  Lstm() = default;
  Lstm(int64_t input, int64_t hidden, Rng& rng, int64_t layers = 1, bool bidirectional = false)
      : Recurrent({CellKind::lstm, input, hidden, layers, bidirectional, 0}, rng) {}
};

/// Layers of GRU cells.
class Gru : public Recurrent {
 public:
  Gru() = default;
  Gru(int64_t input, int64_t hidden, Rng& rng, int64_t layers = 1, bool bidirectional = false)
      : Recurrent({CellKind::gru, input, hidden, layers, bidirectional, 0}, rng) {}
};

}  // namespace qkv
