// One recurrent layer over a ragged batch, time-major: what the recurrent ops share. Not a public header.
#pragma once

#include <vector>

#include "qkv/core/autograd.h"
#include "qkv/kernels/pointwise.h"
#include "qkv/kernels/rowwise.h"
#include "qkv/ops/common.h"
#include "qkv/ops/product.h"
#include "qkv/ops/ragged.h"
#include "qkv/ops/recurrent.h"

namespace qkv::rnn {

using kernels::RowMajor;
/// Row `first_row` and those below it of a dense tensor [R, C], from `first_column` on.
template <class T>
RowMajor<T> matrix(TensorOf<T>& t, int64_t first_row = 0, int64_t first_column = 0) {
  return {t.template data<std::remove_const_t<T>>() + first_row * t.dim(1) + first_column, t.dim(1)};
}

/// y += x.
template <class T>
void add_to(const T* x, T* y, int64_t n) {
  kernels::add(x, y, y, n);
}

/// c [M,N] (+)= a [M,K]·wᵀ (w [N,K]) + bias.
template <class T>
void multiply_transposed(const int64_t (&mnk)[3], RowMajor<const T> a, RowMajor<const T> w, RowMajor<T> c,
                         bool accumulate, const T* bias = nullptr) {
  product<T>(mnk, {a, false}, {w, true}, c, accumulate, bias);
}
/// c [M,N] (+)= a [M,K]·w [K,N] + bias.
template <class T>
void multiply(const int64_t (&mnk)[3], RowMajor<const T> a, RowMajor<const T> w, RowMajor<T> c, bool accumulate,
              const T* bias = nullptr) {
  product<T>(mnk, {a, false}, {w, false}, c, accumulate, bias);
}
/// w [M,N] (+)= aᵀ·b with a [K,M], b [K,N]: the gradient of a weight over all rows at once.
template <class T>
void weight_product(const int64_t (&mnk)[3], RowMajor<const T> a, RowMajor<const T> b, RowMajor<T> w, bool accumulate) {
  product<T>(mnk, {a, true}, {b, false}, w, accumulate);
}

/// to[i] = from[rows[i]]: packed → time-major.
Tensor take_rows(const Tensor& from, const std::vector<int64_t>& rows);
void take_rows(const Tensor& from, const std::vector<int64_t>& rows, Tensor& to);
/// to[rows[i]] = from[i]: time-major → packed. `from` may start at a row offset.
Tensor place_rows(const Tensor& from, const std::vector<int64_t>& rows, int64_t first_row = 0);

/// A layer's buffers. State row r < B is sequence order[r]'s initial state; row B + begin[t] + r its state after
/// step t.
struct LayerRun {
  CellKind kind = CellKind::lstm;
  const TimeOrder* time = nullptr;
  int64_t B = 0, T = 0, H = 0;
  Tensor w_ih, w_hh, b_ih, b_hh;  // dense; b_ih holds b_ih + b_hh for an LSTM
  Tensor w_hh_t;                  // [H, G·H]: turned once, not at every step
  bool training = false;
  Tensor gates;   // [T, G·H]: W_ih x + b, filled by the caller; an LSTM's become its activations, then gradients
  Tensor saved;   // [T, 4H], GRU only
  Tensor h_gate;  // [B, 3H], GRU only: W_hh h + b_hh of one step
  Tensor h, c;    // [B+T, H]

  int64_t gate_width() const { return (kind == CellKind::lstm ? 4 : 3) * H; }
  int64_t first(int64_t t) const { return time->begin[static_cast<size_t>(t)]; }
  int64_t previous(int64_t t) const { return t == 0 ? 0 : B + first(t - 1); }
  int64_t current(int64_t t) const { return B + first(t); }
  /// Rows of the state buffer that hold each sequence's last state, in the batch's order.
  std::vector<int64_t> last_rows(const Ragged& batch) const;
};

/// Checks shapes and fills in everything but gates. `op` names the caller in errors.
LayerRun start_layer(const char* op, CellKind kind, const Ragged& batch, const RecurrentWeights& weights,
                     const RecurrentState& initial, bool training);
/// Gates of step t, complete but for W_hh h, become h (and c).
void step_forward(LayerRun& run, int64_t t);
/// All steps. Where the weights stay in a core's cache, blocks of sequences walk through time each on one thread;
/// otherwise the threads share every step.
void walk_forward(LayerRun& run);

/// What flows back through a layer.
struct LayerGradients {
  Tensor d_h, d_c;   // [B, H]: of the state after the step at hand, then of the one before it
  Tensor d_x_gates;  // [T, G·H]
  Tensor d_h_gates;  // [T, 3H], GRU only
};

LayerGradients start_backward(const LayerRun& run, const Tensor& d_last_h, const Tensor& d_last_c);
/// Turns d_h (and d_c) of step t's states into those of the states before, and fills step t's rows of the gates'.
void step_backward(const LayerRun& run, LayerGradients& grads, int64_t t);
/// All steps from the last to the first, as walk_forward; d_out [T, H] (or undefined) is added to the states'.
void walk_backward(const LayerRun& run, LayerGradients& grads, const Tensor& d_out);

/// W_hh's and the biases' gradients over all steps, into inputs weight_hh, bias_ih and bias_hh of the op. d_input holds
/// the gradients of the input's gates: d_x_gates, or sums of its rows.
struct WeightSlots {
  size_t w_hh = 0, b_ih = 0, b_hh = 0;
};
void weight_gradients(const LayerRun& run, const LayerGradients& grads, const Tensor& d_input, const WeightSlots& at,
                      Grads& d);
/// The state before each time-major row, [T, H].
Tensor previous_states(const LayerRun& run);
/// [B, H] in the batch's order, from time order.
Tensor in_batch_order(const Tensor& sorted, const TimeOrder& time);

}  // namespace qkv::rnn
