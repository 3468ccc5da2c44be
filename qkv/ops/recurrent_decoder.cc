// The attending decoder: checks, buffers and the walk forward; the way back is in recurrent_decoder_backward.cc.
#include "qkv/ops/recurrent_decoder.h"

#include <algorithm>
#include <numeric>

#include "qkv/kernels/dropout.h"
#include "qkv/ops/recurrent_decoder_run.h"

namespace qkv {
namespace {

using namespace rnn;

const char* const kOp = "recurrent_decoder";

// c_t from the states before step t.
template <class T>
void attend_step(DecoderRun& run, int64_t t) {
  const int64_t n = run.batch.time().count(t), at = run.top().first(t), A = run.heads * run.Dv;
  if (run.plan.query_weight.defined()) {
    multiply_transposed<T>({n, run.heads * run.D, run.top().H}, matrix<const T>(run.top().h, run.top().previous(t)),
                           matrix<const T>(run.plan.query_weight), matrix<T>(run.q, at), false,
                           run.plan.query_bias.defined() ? run.plan.query_bias.data<T>() : nullptr);
  }
  const kernels::AttentionOutputs<T> out{heads_of<T>(matrix<T>(run.attended, at).data, run.heads, run.Dv),
                                         heads_of<T>(matrix<T>(run.lse, at).data, run.heads, 1)};
  kernels::attention_forward(step_inputs<T>(run, t), out);
  if (run.plan.output_weight.defined()) {
    multiply_transposed<T>({n, run.W, A}, matrix<const T>(run.attended, at), matrix<const T>(run.plan.output_weight),
                           matrix<T>(run.context, at), false,
                           run.plan.output_bias.defined() ? run.plan.output_bias.data<T>() : nullptr);
  }
}

template <class T>
void forward(DecoderRun& run) {
  LayerRun& first = run.layers[0];
  const int64_t G = first.gate_width();
  multiply_transposed<T>({first.T, G, run.E}, matrix<const T>(run.x), matrix<const T>(first.w_ih),
                         matrix<T>(first.gates), false, first.b_ih.data<T>());
  for (int64_t t = 0; t < run.batch.longest(); ++t) {
    const int64_t n = run.batch.time().count(t), at = first.first(t);
    attend_step<T>(run, t);
    multiply_transposed<T>({n, G, run.W}, matrix<const T>(run.context, at), matrix<const T>(first.w_ih, 0, run.E),
                           matrix<T>(first.gates, at), true);
    step_forward(first, t);
    for (size_t l = 1; l < run.layers.size(); ++l) {
      const LayerRun& below = run.layers[l - 1];
      LayerRun& layer = run.layers[l];
      if (run.inputs[l].defined()) {
        kernels::dropout(dropout_at(run, l, t), matrix<const T>(below.h, below.current(t)).data,
                         matrix<T>(run.inputs[l], at).data, n * below.H);
      }
      multiply_transposed<T>({n, layer.gate_width(), below.H}, {layer_input<T>(run, l, t), below.H},
                             matrix<const T>(layer.w_ih), matrix<T>(layer.gates, at), false, layer.b_ih.data<T>());
      step_forward(layer, t);
    }
  }
}

void check_decoder(const Tensor& x, const Ragged& batch, const DecoderCells& cells, const AttentionPlan& plan,
                   size_t states) {
  check_defined(kOp, x);
  if (cells.layers.empty()) shape_error(kOp, "no layers given");
  if (states != 0 && states != cells.layers.size()) {
    shape_error(kOp, std::to_string(states) + " initial states for " + std::to_string(cells.layers.size()) + " layers");
  }
  if (!plan.defined()) shape_error(kOp, "no keys to attend to");
  if (plan.keys.rank() != 3 || plan.values.rank() != 3 || plan.keys.dim(0) != plan.memory.rows() ||
      plan.values.dim(0) != plan.memory.rows() || plan.memory.sequences() != batch.sequences()) {
    shape_error(kOp, "keys=" + plan.keys.shape().str() + ", values=" + plan.values.shape().str() + " for " +
                         std::to_string(plan.memory.sequences()) + " memories and " +
                         std::to_string(batch.sequences()) + " targets");
  }
  const Tensor& w_ih = cells.layers[0].w_ih;
  const int64_t W = plan.width(), H = cells.layers.back().w_hh.dim(1), D = plan.keys.dim(2);
  if (x.rank() != 2 || x.dim(0) != batch.rows() || x.dim(1) + W != w_ih.dim(1)) {
    shape_error(kOp, "x=" + x.shape().str() + " with a context of width " + std::to_string(W) + "; expected " +
                         std::to_string(batch.rows()) +
                         " rows and widths that add up to w_ih.dim(1), w_ih=" + w_ih.shape().str());
  }
  const int64_t query = plan.query_weight.defined() ? plan.query_weight.dim(0) : H;
  if (!plan.uniform && (query != plan.heads * D || (plan.query_weight.defined() && plan.query_weight.dim(1) != H))) {
    shape_error(kOp, "a query of width " + std::to_string(query) + " from a state of width " + std::to_string(H) +
                         " for keys=" + plan.keys.shape().str());
  }
  if (plan.rule.dropout > 0) throw ConfigError("[recurrent_decoder] attention dropout is not available here");
}

DecoderRun start(const Tensor& x, const Ragged& batch, const DecoderCells& cells, const AttentionPlan& plan) {
  DecoderRun run;
  run.batch = batch;
  run.drop = {cells.dropout_seed, kernels::dropout_threshold(cells.dropout),
              static_cast<float>(1 / (1 - cells.dropout))};
  run.plan = plan;
  for (Tensor* t : {&run.plan.keys, &run.plan.values, &run.plan.query_weight, &run.plan.query_bias,
                    &run.plan.output_weight, &run.plan.output_bias, &run.plan.rule.additive}) {
    if (t->defined()) *t = dense(*t);
  }
  run.E = x.dim(1);
  run.W = plan.width();
  run.heads = plan.heads;
  run.kv_heads = plan.keys.dim(1);
  run.D = plan.keys.dim(2);
  run.Dv = plan.values.dim(2);
  const TimeOrder& time = batch.time();
  // The memory in time order, so that step t reads its first count(t) sequences.
  std::vector<int64_t> rows;
  run.key_at.assign(1, 0);
  for (int64_t b : time.order) {
    for (int64_t j = plan.memory.begin(b); j < plan.memory.begin(b + 1); ++j) rows.push_back(j);
    run.key_at.push_back(static_cast<int64_t>(rows.size()));
  }
  const bool sorted = std::is_sorted(time.order.begin(), time.order.end());
  const auto in_order = [&](const Tensor& t) {
    const Tensor flat = t.as_strided({t.dim(0), t.dim(1) * t.dim(2)}, {t.dim(1) * t.dim(2), 1}, t.storage_offset());
    return sorted ? flat : take_rows(flat, rows);
  };
  run.keys = in_order(run.plan.keys);
  run.values = in_order(run.plan.values);
  run.row_at.resize(static_cast<size_t>(batch.sequences()) + 1);
  std::iota(run.row_at.begin(), run.row_at.end(), int64_t{0});
  const DType dtype = x.dtype();
  run.x = take_rows(dense(x), time.forward_rows);
  if (plan.uniform) {
    run.q = Tensor::zeros({batch.rows(), run.heads * run.D}, dtype);
  } else if (plan.query_weight.defined()) {
    run.q = Tensor::empty({batch.rows(), run.heads * run.D}, dtype);
  }
  run.attended = Tensor::empty({batch.rows(), run.heads * run.Dv}, dtype);
  run.lse = Tensor::empty({batch.rows(), run.heads}, dtype);
  run.context = plan.output_weight.defined() ? Tensor::empty({batch.rows(), run.W}, dtype) : run.attended;
  return run;
}

}  // namespace

DecoderResult recurrent_decoder(const Tensor& x, const Ragged& batch, const DecoderCells& cells,
                                const AttentionPlan& plan, const std::vector<RecurrentState>& initial) {
  check_decoder(x, batch, cells, plan, initial.size());
  std::vector<Tensor> inputs{x,
                             plan.keys,
                             plan.values,
                             plan.query_weight,
                             plan.query_bias,
                             plan.output_weight,
                             plan.output_bias,
                             plan.rule.additive};
  for (size_t l = 0; l < cells.layers.size(); ++l) {
    const RecurrentWeights& w = cells.layers[l];
    const RecurrentState state = initial.empty() ? RecurrentState{} : initial[l];
    inputs.insert(inputs.end(), {w.w_ih, w.w_hh, w.b_ih, w.b_hh, state.h, state.c});
  }
  const bool recorded = needs_record(inputs);
  DecoderRun run = start(x, batch, cells, plan);
  for (size_t l = 0; l < cells.layers.size(); ++l) {
    run.layers.push_back(start_layer(kOp, cells.kind, run.batch, cells.layers[l],
                                     initial.empty() ? RecurrentState{} : initial[l], recorded));
    const bool dropped = l > 0 && run.drop.threshold > 0;
    run.inputs.push_back(dropped ? Tensor::empty({batch.rows(), run.layers[l - 1].H}, x.dtype()) : Tensor());
  }
  dispatch(x.dtype(), [&](auto t) { forward<decltype(t)>(run); });

  const std::vector<int64_t>& rows = run.batch.time().forward_rows;
  const Tensor queries = place_rows(run.q.defined() ? run.q : previous_states(run.top()), rows);
  std::vector<Tensor> outs{place_rows(run.top().h, rows, run.top().B), place_rows(run.context, rows)};
  for (const LayerRun& layer : run.layers) {
    const std::vector<int64_t> last = layer.last_rows(batch);
    outs.push_back(take_rows(layer.h, last));
    if (cells.kind == CellKind::lstm) outs.push_back(take_rows(layer.c, last));
  }
  outs = record(kOp, outs, inputs,
                [run](const std::vector<Tensor>& d_outs, Grads& d) { decoder_backward(run, d_outs, d); });
  DecoderResult result{
      outs[0],
      outs[1],
      queries.as_strided({batch.rows(), run.heads, run.D}, {run.heads * run.D, run.D, 1}, queries.storage_offset()),
      {}};
  for (size_t at = 2; at < outs.size();) {
    const Tensor h = outs[at++];
    result.state.push_back({h, cells.kind == CellKind::lstm ? outs[at++] : Tensor()});
  }
  return result;
}

}  // namespace qkv
