// The recurrent op: one layer, all steps forward, and back through time.
#include "qkv/ops/recurrent.h"

#include "qkv/core/autograd.h"
#include "qkv/ops/recurrent_layer.h"

namespace qkv {
namespace {

using namespace rnn;

enum Input : size_t { kX, kWih, kWhh, kBih, kBhh, kH, kC };

void check_input(const char* op, const Tensor& x, const Ragged& batch, const RecurrentWeights& weights) {
  check_defined(op, x);
  if (x.rank() != 2 || x.dim(0) != batch.rows() || x.dim(1) != weights.w_ih.dim(1)) {
    shape_error(op, "x=" + x.shape().str() + "; expected " + Shape{batch.rows(), weights.w_ih.dim(1)}.str() +
                        " for a batch of " + std::to_string(batch.rows()) +
                        " rows and w_ih=" + weights.w_ih.shape().str());
  }
  check_same_dtype(op, x, weights.w_ih);
}

// d_x and W_ih's gradient, each one product over all steps. x is time-major.
void input_gradients(const LayerRun& run, const Tensor& x, const Tensor& d_gates, const std::vector<int64_t>& rows,
                     Grads& d) {
  const int64_t G = run.gate_width(), I = x.dim(1);
  dispatch(x.dtype(), [&](auto t) {
    using T = decltype(t);
    if (d.wants(kX)) {
      const Tensor d_x = Tensor::empty(x.shape(), x.dtype());
      multiply<T>({run.T, I, G}, {d_gates.data<T>(), G}, {run.w_ih.data<T>(), I}, {d_x.data<T>(), I}, false);
      d.add(kX, place_rows(d_x, rows));
    }
    if (d.wants(kWih)) {
      bool fresh = false;
      const Tensor d_w = d.buffer(kWih, fresh);
      weight_product<T>({G, I, run.T}, {d_gates.data<T>(), G}, {x.data<T>(), I}, {d_w.data<T>(), I}, !fresh);
    }
  });
}

}  // namespace

RecurrentResult recurrent(CellKind kind, const Tensor& x_in, const Ragged& batch, const RecurrentWeights& weights,
                          const RecurrentState& initial, bool reverse) {
  const char* op = kind == CellKind::lstm ? "lstm" : "gru";
  const std::vector<Tensor> inputs{x_in, weights.w_ih, weights.w_hh, weights.b_ih, weights.b_hh, initial.h, initial.c};
  const bool recorded = needs_record(inputs);
  const LayerRun run = start_layer(op, kind, batch, weights, initial, recorded);
  check_input(op, x_in, batch, weights);
  const std::vector<int64_t>& rows = run.time->rows(reverse);
  const Tensor x = take_rows(dense(x_in), rows);  // [T, I], time-major
  dispatch(x.dtype(), [&](auto t) {
    using T = decltype(t);
    multiply_transposed<T>({run.T, run.gate_width(), x.dim(1)}, {x.data<T>(), x.dim(1)}, {run.w_ih.data<T>(), x.dim(1)},
                           {run.gates.data<T>(), run.gate_width()}, false, run.b_ih.data<T>());
  });
  walk_forward(run);

  const std::vector<int64_t> last = run.last_rows(batch);
  const bool has_cell = kind == CellKind::lstm;
  std::vector<Tensor> outs{place_rows(run.h, rows, run.B), take_rows(run.h, last)};
  if (has_cell) outs.push_back(take_rows(run.c, last));
  // The batch is kept for its index, which run points into.
  outs = record(op, outs, inputs, [=, batch = batch](const std::vector<Tensor>& d_outs, Grads& d) {
    const std::vector<int64_t>& order = batch.time().rows(reverse);
    const LayerGradients g = start_backward(run, d_outs[1], has_cell ? d_outs[2] : Tensor());
    const Tensor d_out = d_outs[0].defined() ? take_rows(dense(d_outs[0]), order) : Tensor();
    walk_backward(run, g, d_out);
    input_gradients(run, x, g.d_x_gates, order, d);
    weight_gradients(run, g, {kWhh, kBih, kBhh}, d);
    if (d.wants(kH)) d.add(kH, in_batch_order(g.d_h, batch.time()));
    if (has_cell && d.wants(kC)) d.add(kC, in_batch_order(g.d_c, batch.time()));
  });
  return {outs[0], {outs[1], has_cell ? outs[2] : Tensor()}};
}

}  // namespace qkv
