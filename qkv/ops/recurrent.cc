// The recurrent op: one layer, all steps forward, and back through time.
#include "qkv/ops/recurrent.h"

#include "qkv/core/autograd.h"
#include "qkv/ops/ops.h"
#include "qkv/ops/recurrent_layer.h"

namespace qkv {
namespace {

using namespace rnn;

enum Input : size_t { kX, kWih, kWhh, kBih, kBhh, kH, kC };

// x has this many rows, as wide as W_ih expects.
void check_input(const char* op, const Tensor& x, int64_t rows, const RecurrentWeights& weights) {
  check_defined(op, x);
  if (x.rank() != 2 || x.dim(0) != rows || x.dim(1) != weights.w_ih.dim(1)) {
    shape_error(op, "x=" + x.shape().str() + "; expected " + Shape{rows, weights.w_ih.dim(1)}.str() +
                        " for a batch of " + std::to_string(rows) + " rows and w_ih=" + weights.w_ih.shape().str());
  }
  check_same_dtype(op, x, weights.w_ih);
}

// Below this many rows per entry of a table, its rows are looked up first.
constexpr int64_t kRowsAnEntry = 4;

// x·W_ihᵀ + b of rows that are read as they are, or of a table's entries.
void project(const LayerRun& run, const Tensor& x, Tensor& gates) {
  const int64_t G = run.gate_width(), I = x.dim(1);
  dispatch(x.dtype(), [&](auto t) {
    using T = decltype(t);
    multiply_transposed<T>({x.dim(0), G, I}, {x.data<T>(), I}, {run.w_ih.data<T>(), I}, {gates.data<T>(), G}, false,
                           run.b_ih.data<T>());
  });
}

// The entry each time-major row reads.
std::vector<int64_t> ids_in_order(const char* op, const RecurrentInput& input, const Ragged& batch,
                                  const std::vector<int64_t>& rows) {
  if (static_cast<int64_t>(input.ids.size()) != batch.rows()) {
    shape_error(op, std::to_string(input.ids.size()) + " ids for a batch of " + std::to_string(batch.rows()) + " rows");
  }
  std::vector<int64_t> ids;
  ids.reserve(rows.size());
  for (const int64_t row : rows) {
    const int64_t id = input.ids[static_cast<size_t>(row)];
    if (id < 0 || id >= input.rows.dim(0)) {
      shape_error(op, "index " + std::to_string(id) + " outside a table of shape " + input.rows.shape().str());
    }
    ids.push_back(id);
  }
  return ids;
}

// The sum of the rows that read each entry.
Tensor sum_by_id(const Tensor& rows, const std::vector<int64_t>& ids, int64_t entries) {
  Tensor sums = Tensor::zeros({entries, rows.dim(1)}, rows.dtype());
  add_rows_at(rows, ids, sums);
  return sums;
}

// x's gradient, in x's order, and W_ih's, each one product over all rows of x.
Tensor input_gradients(const LayerRun& run, const Tensor& x, const Tensor& d_gates, Grads& d) {
  const int64_t G = run.gate_width(), I = x.dim(1), n = x.dim(0);
  Tensor d_x = d.wants(kX) ? Tensor::empty(x.shape(), x.dtype()) : Tensor();
  dispatch(x.dtype(), [&](auto t) {
    using T = decltype(t);
    if (d_x.defined()) {
      multiply<T>({n, I, G}, {d_gates.data<T>(), G}, {run.w_ih.data<T>(), I}, {d_x.data<T>(), I}, false);
    }
    if (d.wants(kWih)) {
      bool fresh = false;
      Tensor d_w = d.buffer(kWih, fresh);
      weight_product<T>({G, I, n}, {d_gates.data<T>(), G}, {x.data<T>(), I}, {d_w.data<T>(), I}, !fresh);
    }
  });
  return d_x;
}

}  // namespace

RecurrentResult recurrent(CellKind kind, const RecurrentInput& input, const Ragged& batch,
                          const RecurrentWeights& weights, const RecurrentState& initial, bool reverse) {
  const char* op = name_of(kind);
  const bool by_entry =
      input.named && input.rows.defined() && input.rows.rank() == 2 && input.rows.dim(0) * kRowsAnEntry <= batch.rows();
  if (input.named && !by_entry) {
    return recurrent(kind, embedding(input.rows, input.ids), batch, weights, initial, reverse);
  }
  const std::vector<Tensor> inputs{input.rows,   weights.w_ih, weights.w_hh, weights.b_ih,
                                   weights.b_hh, initial.h,    initial.c};
  const bool recorded = needs_record(inputs);
  LayerRun run = start_layer(op, kind, batch, weights, initial, recorded);
  check_input(op, input.rows, by_entry ? input.rows.dim(0) : batch.rows(), weights);
  const std::vector<int64_t>& rows = run.time->rows(reverse);
  // x is time-major, or the table; then ids are in time order.
  Tensor x = dense(input.rows);
  std::vector<int64_t> ids;
  if (by_entry) {
    ids = ids_in_order(op, input, batch, rows);
    Tensor projected = Tensor::empty({x.dim(0), run.gate_width()}, x.dtype());
    project(run, x, projected);
    take_rows(projected, ids, run.gates);
  } else {
    x = take_rows(x, rows);
    project(run, x, run.gates);
  }
  walk_forward(run);

  const std::vector<int64_t> last = run.last_rows(batch);
  const bool has_cell = kind == CellKind::lstm;
  std::vector<Tensor> outs{place_rows(run.h, rows, run.B), take_rows(run.h, last)};
  if (has_cell) outs.push_back(take_rows(run.c, last));
  // The batch is kept for its index, which run points into.
  outs = record(op, outs, inputs, [=, batch = batch](const std::vector<Tensor>& d_outs, Grads& d) {
    const std::vector<int64_t>& order = batch.time().rows(reverse);
    LayerGradients g = start_backward(run, d_outs[1], has_cell ? d_outs[2] : Tensor());
    const Tensor d_out = d_outs[0].defined() ? take_rows(dense(d_outs[0]), order) : Tensor();
    walk_backward(run, g, d_out);
    const Tensor d_gates = by_entry ? sum_by_id(g.d_x_gates, ids, x.dim(0)) : g.d_x_gates;
    const Tensor d_x = input_gradients(run, x, d_gates, d);
    if (d_x.defined()) d.add(kX, by_entry ? d_x : place_rows(d_x, order));
    weight_gradients(run, g, d_gates, {kWhh, kBih, kBhh}, d);
    if (d.wants(kH)) d.add(kH, in_batch_order(g.d_h, batch.time()));
    if (has_cell && d.wants(kC)) d.add(kC, in_batch_order(g.d_c, batch.time()));
  });
  return {outs[0], {outs[1], has_cell ? outs[2] : Tensor()}};
}

}  // namespace qkv
