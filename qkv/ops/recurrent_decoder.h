// A recurrent decoder that attends before every step, the whole target sequence as one op.
#pragma once

#include <vector>

#include "qkv/ops/attention_plan.h"
#include "qkv/ops/recurrent.h"

namespace qkv {

/// The decoder's cells, lowest layer first. Layer 0 reads [x ; c] (width E + plan.width()), layer l the state of
/// layer l-1, with dropout between layers when dropout_seed is given a positive rate.
struct DecoderCells {
  CellKind kind = CellKind::gru;
  std::vector<RecurrentWeights> layers;
  double dropout = 0;
  uint64_t dropout_seed = 0;
};

/// What recurrent_decoder() gives.
struct DecoderResult {
  Tensor out;                         // [T, H], the top layer's state after each step
  Tensor context;                     // [T, W], what each step attended to
  Tensor queries;                     // [T, heads, D], for traces; no gradient
  std::vector<RecurrentState> state;  // of each layer after the last step, [B, H]
};

/// Step t of each sequence:  c_t = attend(s_{t-1}, memory);  s_t = cells([x_t ; c_t], s_{t-1})
/// where the query is the top layer's state before the step. x [T, E] packed as `batch` says; sequence b attends to
/// sequence b of plan.memory; `initial` holds one state per layer, or is empty for zeros.
/// Input projections of x are one product; the gradients of weights, keys and values are one product each at the end.
/// Dropout of attention weights is not available here. Throws ShapeError, ConfigError.
DecoderResult recurrent_decoder(const Tensor& x, const Ragged& batch, const DecoderCells& cells,
                                const AttentionPlan& plan, const std::vector<RecurrentState>& initial = {});

}  // namespace qkv
