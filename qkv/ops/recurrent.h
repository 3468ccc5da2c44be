// Recurrent layers over whole ragged batches, each one op: LSTM and GRU.
#pragma once

#include <vector>

#include "qkv/base/names.h"
#include "qkv/core/tensor.h"
#include "qkv/ops/ragged.h"

namespace qkv {

/// The cells there are.
enum class CellKind : uint8_t { lstm, gru };
template <>
struct Names<CellKind> {
  static constexpr const char* what = "recurrent cell";
  static constexpr NameRow<CellKind> rows[] = {{CellKind::lstm, "lstm"}, {CellKind::gru, "gru"}};
};

/// PyTorch's parameters. Gate order is [i | f | g | o] for an LSTM (G = 4) and [r | z | n] for a GRU (G = 3).
struct RecurrentWeights {
  Tensor w_ih;  // [G·H, I]
  Tensor w_hh;  // [G·H, H]
  Tensor b_ih;  // [G·H]
  Tensor b_hh;  // [G·H]
};

/// States of all sequences, in the batch's order. Undefined means zero; c belongs to the LSTM alone.
struct RecurrentState {
  Tensor h;  // [B, H]
  Tensor c;  // [B, H]
};

/// What a layer reads: the rows of x, or of a table the rows that ids name. Where a batch has far more rows than the
/// table, as with letters, the table is projected instead of the rows: the same sums, taken once per entry.
struct RecurrentInput {
  RecurrentInput(Tensor x) : rows(std::move(x)) {}  // NOLINT: a tensor is an input
  RecurrentInput(Tensor table, std::vector<int64_t> ids) : rows(std::move(table)), ids(std::move(ids)), named(true) {}

  Tensor rows;               // [T, I], or the table [V, I]
  std::vector<int64_t> ids;  // T of them
  bool named = false;        // whether ids say which rows
};

/// What one layer gives.
struct RecurrentResult {
  Tensor out;            // [T, H], packed like the input
  RecurrentState state;  // after each sequence's last step (the initial state of an empty sequence)
};

/// LSTM:  i, f, o = σ(W x + b), g = tanh(W x + b);  c = f ⊙ c₋ + i ⊙ g;  h = o ⊙ tanh(c)
/// GRU:   r, z = σ(W x + b);  n = tanh(W x + b + r ⊙ (W h₋ + b));  h = (1 - z) ⊙ n + z ⊙ h₋
/// x [T, I] packed as `batch` says; with `reverse` each sequence is read from its end, and out[row] is still the
/// output at that row. All input projections are one product, each weight's gradient is one product at the end, and
/// no step is computed past a sequence's end. Throws ShapeError.
RecurrentResult recurrent(CellKind kind, const RecurrentInput& x, const Ragged& batch, const RecurrentWeights& weights,
                          const RecurrentState& initial = {}, bool reverse = false);

}  // namespace qkv
