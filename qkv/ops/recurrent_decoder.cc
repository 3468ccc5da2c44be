// The attending decoder: forward step by step, back through time, weight gradients at the end.
#include "qkv/ops/recurrent_decoder.h"

#include <cmath>
#include <numeric>

#include "qkv/kernels/attention.h"
#include "qkv/kernels/dropout.h"
#include "qkv/ops/recurrent_layer.h"

namespace qkv {
namespace {

using namespace rnn;

const char* const kOp = "recurrent_decoder";
enum Input : size_t { kX, kKeys, kValues, kWq, kBq, kWo, kBo, kAdditive, kLayers };
constexpr size_t kPerLayer = 6;  // w_ih, w_hh, b_ih, b_hh, h, c

// Everything of one run, time-major but for the memory, which is kept in the batch's and in the order of time.
struct Run {
  Ragged batch;
  std::vector<LayerRun> layers;
  std::vector<Tensor> inputs;  // of layer l ≥ 1 after dropout, [T, H]; undefined without dropout
  kernels::DropoutRule drop;
  int64_t E = 0, W = 0, heads = 1, kv_heads = 1, D = 0, Dv = 0;
  AttentionPlan plan;                   // dense and without history
  Tensor keys, values;                  // [Tk, Hkv·D], [Tk, Hkv·Dv] in the order of time
  std::vector<int64_t> row_at, key_at;  // offsets of one query a sequence, and of the keys in the order of time
  Tensor x;                             // [T, E]
  Tensor q;                             // [T, heads·D]; undefined when the state itself is the query
  Tensor attended, lse;                 // [T, heads·Dv], [T, heads]
  Tensor context;                       // [T, W]

  const LayerRun& top() const { return layers.back(); }
};

template <class T>
Matrix<T> matrix(const Tensor& t, int64_t first_row = 0, int64_t first_column = 0) {
  return {t.data<std::remove_const_t<T>>() + first_row * t.dim(1) + first_column, t.dim(1)};
}

template <class T>
kernels::Strided<T> heads_of(T* data, int64_t heads, int64_t width) {
  return {data, 0, width, heads * width};
}

// The kernels' arguments for queries and keys packed as the offsets say.
template <class T>
kernels::AttentionInputs<T> attention_inputs(const Run& run, const std::vector<int64_t>& q_at,
                                             const std::vector<int64_t>& k_at, int64_t sequences) {
  kernels::AttentionInputs<T> in;
  in.dims = {sequences, run.heads, run.kv_heads, 1, 0, run.D, run.Dv};
  for (int64_t b = 0; b < sequences; ++b) {
    const auto i = static_cast<size_t>(b);
    in.dims.Lq = std::max(in.dims.Lq, q_at[i + 1] - q_at[i]);
    in.dims.Lk = std::max(in.dims.Lk, k_at[i + 1] - k_at[i]);
  }
  in.q_offsets = q_at.data();
  in.k_offsets = k_at.data();
  const ScoreRule& rule = run.plan.rule;
  const double plain = rule.additive.defined() ? 1.0 : 1.0 / std::sqrt(static_cast<double>(run.D));
  in.rule.scale = static_cast<T>(rule.scale.value_or(plain));
  in.rule.softcap = static_cast<T>(rule.softcap);
  in.rule.normaliser = rule.normaliser;
  in.rule.additive = rule.additive.defined() ? rule.additive.data<T>() : nullptr;
  return in;
}

template <class T>
void attention_gradients(const kernels::AttentionInputs<T>& in, const kernels::AttentionGrads<T>& grads) {
  if constexpr (Use<T>::fast) {
    kernels::attention_backward(in, grads);
  } else {
    kernels::reference::attention_backward(in, grads);
  }
}

// The query rows of step t: projected ones, or the top layer's state before the step.
template <class T>
T* query_rows(const Run& run, int64_t t) {
  return run.q.defined() ? matrix<T>(run.q, run.top().first(t)).data
                         : matrix<T>(run.top().h, run.top().previous(t)).data;
}

template <class T>
kernels::AttentionInputs<T> step_inputs(const Run& run, int64_t t) {
  auto in = attention_inputs<T>(run, run.row_at, run.key_at, run.batch.time().count(t));
  in.q = heads_of<const T>(query_rows<T>(run, t), run.heads, run.D);
  in.k = heads_of<const T>(run.keys.data<T>(), run.kv_heads, run.D);
  in.v = heads_of<const T>(run.values.data<T>(), run.kv_heads, run.Dv);
  return in;
}

// c_t from the states before step t.
template <class T>
void attend_step(const Run& run, int64_t t) {
  const int64_t n = run.batch.time().count(t), at = run.top().first(t), A = run.heads * run.Dv;
  if (run.plan.query_weight.defined()) {
    multiply_transposed<T>({n, run.heads * run.D, run.top().H}, matrix<const T>(run.top().h, run.top().previous(t)),
                           matrix<const T>(run.plan.query_weight), matrix<T>(run.q, at), false,
                           run.plan.query_bias.defined() ? run.plan.query_bias.data<T>() : nullptr);
  }
  const kernels::AttentionOutputs<T> out{heads_of<T>(matrix<T>(run.attended, at).data, run.heads, run.Dv),
                                         heads_of<T>(matrix<T>(run.lse, at).data, run.heads, 1)};
  if constexpr (Use<T>::fast) {
    kernels::attention_forward(step_inputs<T>(run, t), out);
  } else {
    kernels::reference::attention_forward(step_inputs<T>(run, t), out);
  }
  if (run.plan.output_weight.defined()) {
    multiply_transposed<T>({n, run.W, A}, matrix<const T>(run.attended, at), matrix<const T>(run.plan.output_weight),
                           matrix<T>(run.context, at), false,
                           run.plan.output_bias.defined() ? run.plan.output_bias.data<T>() : nullptr);
  }
}

kernels::DropoutRule dropout_at(const Run& run, size_t layer, int64_t t) {
  kernels::DropoutRule rule = run.drop;
  rule.seed = mix64(rule.seed + mix64(static_cast<uint64_t>(t) * 64 + layer));
  return rule;
}

// What layer l ≥ 1 reads at step t.
template <class T>
const T* layer_input(const Run& run, size_t l, int64_t t) {
  const LayerRun& below = run.layers[l - 1];
  return run.inputs[l].defined() ? matrix<const T>(run.inputs[l], below.first(t)).data
                                 : matrix<const T>(below.h, below.current(t)).data;
}

template <class T>
void forward(const Run& run) {
  const LayerRun& first = run.layers[0];
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
      const LayerRun &below = run.layers[l - 1], &layer = run.layers[l];
      if (run.inputs[l].defined()) {
        Use<T>::dropout(dropout_at(run, l, t), matrix<const T>(below.h, below.current(t)).data,
                        matrix<T>(run.inputs[l], at).data, n * below.H);
      }
      multiply_transposed<T>({n, layer.gate_width(), below.H}, {layer_input<T>(run, l, t), below.H},
                             matrix<const T>(layer.w_ih), matrix<T>(layer.gates, at), false, layer.b_ih.data<T>());
      step_forward(layer, t);
    }
  }
}

// What flows back through the run, time-major.
struct Back {
  std::vector<LayerGradients> layers;
  Tensor d_out;              // [T, H] or undefined
  Tensor d_context;          // [T, W]
  bool has_context = false;  // whether d_context arrived from outside, so that steps add to it
  Tensor d_attended;         // [T, heads·Dv]; d_context itself without an output weight
  Tensor d_q;                // [T, heads·D]; undefined for uniform weights
  Tensor d_input;            // [B, H]: of a higher layer's input at one step
};

// Gradients of step t's context, query and, through the query, of the top state before.
template <class T>
void attend_backward(const Run& run, const Back& back, int64_t t) {
  const int64_t n = run.batch.time().count(t), at = run.top().first(t), A = run.heads * run.Dv, H = run.top().H;
  const LayerRun& first = run.layers[0];
  multiply<T>({n, run.W, first.gate_width()}, matrix<const T>(back.layers[0].d_x_gates, at),
              matrix<const T>(first.w_ih, 0, run.E), matrix<T>(back.d_context, at), back.has_context);
  if (run.plan.output_weight.defined()) {
    multiply<T>({n, A, run.W}, matrix<const T>(back.d_context, at), matrix<const T>(run.plan.output_weight),
                matrix<T>(back.d_attended, at), false);
  }
  if (!back.d_q.defined()) return;
  kernels::AttentionGrads<T> grads;
  grads.out = heads_of<const T>(matrix<T>(run.attended, at).data, run.heads, run.Dv);
  grads.lse = heads_of<const T>(matrix<T>(run.lse, at).data, run.heads, 1);
  grads.d_out = heads_of<const T>(matrix<T>(back.d_attended, at).data, run.heads, run.Dv);
  grads.d_q = heads_of<T>(matrix<T>(back.d_q, at).data, run.heads, run.D);
  attention_gradients<T>(step_inputs<T>(run, t), grads);
  if (run.plan.query_weight.defined()) {
    multiply<T>({n, H, run.heads * run.D}, matrix<const T>(back.d_q, at), matrix<const T>(run.plan.query_weight),
                matrix<T>(back.layers.back().d_h), true);
  } else {
    Use<T>::add_to(matrix<const T>(back.d_q, at).data, back.layers.back().d_h.template data<T>(), n * H);
  }
}

template <class T>
void backward_steps(const Run& run, const Back& back) {
  for (int64_t t = run.batch.longest() - 1; t >= 0; --t) {
    const int64_t n = run.batch.time().count(t), at = run.top().first(t);
    if (back.d_out.defined()) {
      Use<T>::add_to(matrix<const T>(back.d_out, at).data, back.layers.back().d_h.template data<T>(), n * run.top().H);
    }
    for (size_t l = run.layers.size() - 1; l > 0; --l) {
      const LayerRun &layer = run.layers[l], &below = run.layers[l - 1];
      step_backward(layer, back.layers[l], t);
      T* d_input = back.d_input.data<T>();
      multiply<T>({n, below.H, layer.gate_width()}, matrix<const T>(back.layers[l].d_x_gates, at),
                  matrix<const T>(layer.w_ih), {d_input, below.H}, false);
      if (run.inputs[l].defined()) Use<T>::dropout(dropout_at(run, l, t), d_input, d_input, n * below.H);
      Use<T>::add_to(d_input, back.layers[l - 1].d_h.template data<T>(), n * below.H);
    }
    step_backward(run.layers[0], back.layers[0], t);
    attend_backward<T>(run, back, t);
  }
}

// d_weight = d_yᵀ·input over all steps.
template <class T>
void product_gradient(const Tensor& d_y, Matrix<const T> input, Grads& d, size_t weight) {
  if (!d.wants(weight)) return;
  bool fresh = false;
  const Tensor d_w = d.buffer(weight, fresh);
  weight_product<T>({d_w.dim(0), d_w.dim(1), d_y.dim(0)}, matrix<const T>(d_y), input, matrix<T>(d_w), !fresh);
}

// W_ih of layer 0 reads [x ; c]: its columns' gradients, one product each.
template <class T>
void joint_input_gradient(const Run& run, const Tensor& d_gates, Grads& d) {
  if (!d.wants(kLayers)) return;
  bool fresh = false;
  const Tensor d_w = d.buffer(kLayers, fresh);
  const int64_t G = d_w.dim(0), rows = d_gates.dim(0);
  weight_product<T>({G, run.E, rows}, matrix<const T>(d_gates), matrix<const T>(run.x), matrix<T>(d_w), !fresh);
  weight_product<T>({G, run.W, rows}, matrix<const T>(d_gates), matrix<const T>(run.context), matrix<T>(d_w, 0, run.E),
                    !fresh);
}

template <class T>
void bias_gradient(const Tensor& d_y, Grads& d, size_t bias) {
  if (!d.wants(bias)) return;
  bool fresh = false;
  const Tensor d_b = d.buffer(bias, fresh);
  Use<T>::sum_rows({d_y.dim(0), d_y.dim(1), d_y.data<T>(), d_b.data<T>(), !fresh});
}

template <class T>
void cell_weight_gradients(const Run& run, const Back& back, Grads& d) {
  const LayerRun& first = run.layers[0];
  const Tensor& d_gates = back.layers[0].d_x_gates;
  if (d.wants(kX)) {
    const Tensor d_x = Tensor::empty(run.x.shape(), run.x.dtype());
    multiply<T>({first.T, run.E, first.gate_width()}, matrix<const T>(d_gates), matrix<const T>(first.w_ih),
                matrix<T>(d_x), false);
    d.add(kX, place_rows(d_x, run.batch.time().forward_rows));
  }
  joint_input_gradient<T>(run, d_gates, d);
  for (size_t l = 0; l < run.layers.size(); ++l) {
    const size_t at = kLayers + l * kPerLayer;
    const LayerRun& layer = run.layers[l];
    if (l > 0) {
      const LayerRun& below = run.layers[l - 1];
      const Tensor& dropped = run.inputs[l];
      product_gradient<T>(back.layers[l].d_x_gates,
                          dropped.defined() ? matrix<const T>(dropped) : matrix<const T>(below.h, below.B), d, at);
    }
    weight_gradients(layer, back.layers[l], {at + 1, at + 2, at + 3}, d);
    if (d.wants(at + 4)) d.add(at + 4, in_batch_order(back.layers[l].d_h, run.batch.time()));
    if (d.wants(at + 5)) d.add(at + 5, in_batch_order(back.layers[l].d_c, run.batch.time()));
  }
}

// Gradients of keys, values and the additive score's weight: one pass over whole sequences, in the batch's order.
template <class T>
void memory_gradients(const Run& run, const Back& back, Grads& d) {
  if (!d.wants(kKeys) && !d.wants(kValues) && !d.wants(kAdditive)) return;
  const std::vector<int64_t>& rows = run.batch.time().forward_rows;
  const auto packed = [&](const Tensor& t) { return place_rows(t, rows); };
  const Tensor q = packed(run.q.defined() ? run.q : previous_states(run.top()));
  const Tensor out = packed(run.attended), lse = packed(run.lse), d_out = packed(back.d_attended);
  const auto wanted = [&](size_t i, const Tensor& like) {
    return d.wants(i) ? Tensor::empty(like.shape(), like.dtype()) : Tensor();
  };
  const Tensor d_k = wanted(kKeys, run.plan.keys), d_v = wanted(kValues, run.plan.values);
  auto in = attention_inputs<T>(run, run.batch.offsets(), run.plan.memory.offsets(), run.batch.sequences());
  in.q = heads_of<const T>(q.data<T>(), run.heads, run.D);
  in.k = heads_of<const T>(run.plan.keys.data<T>(), run.kv_heads, run.D);
  in.v = heads_of<const T>(run.plan.values.data<T>(), run.kv_heads, run.Dv);
  kernels::AttentionGrads<T> grads;
  grads.out = heads_of<const T>(out.data<T>(), run.heads, run.Dv);
  grads.lse = heads_of<const T>(lse.data<T>(), run.heads, 1);
  grads.d_out = heads_of<const T>(d_out.data<T>(), run.heads, run.Dv);
  if (d_k.defined()) grads.d_k = heads_of<T>(d_k.data<T>(), run.kv_heads, run.D);
  if (d_v.defined()) grads.d_v = heads_of<T>(d_v.data<T>(), run.kv_heads, run.Dv);
  if (d.wants(kAdditive)) grads.d_additive = d.buffer(kAdditive).data<T>();
  attention_gradients<T>(in, grads);
  if (d_k.defined()) d.add(kKeys, d_k);
  if (d_v.defined()) d.add(kValues, d_v);
}

void backward(const Run& run, const std::vector<Tensor>& d_outs, Grads& d) {
  const TimeOrder& time = run.batch.time();
  const DType dtype = run.x.dtype();
  const bool cell = run.top().kind == CellKind::lstm;
  Back back;
  for (size_t l = 0; l < run.layers.size(); ++l) {
    const size_t at = 2 + l * (cell ? 2 : 1);
    back.layers.push_back(start_backward(run.layers[l], d_outs[at], cell ? d_outs[at + 1] : Tensor()));
  }
  if (d_outs[0].defined()) back.d_out = take_rows(dense(d_outs[0]), time.forward_rows);
  back.has_context = d_outs[1].defined();
  back.d_context =
      back.has_context ? take_rows(dense(d_outs[1]), time.forward_rows) : Tensor::empty(run.context.shape(), dtype);
  back.d_attended = run.plan.output_weight.defined() ? Tensor::empty(run.attended.shape(), dtype) : back.d_context;
  if (!run.plan.uniform) back.d_q = Tensor::empty({run.batch.rows(), run.heads * run.D}, dtype);
  back.d_input = Tensor::empty({run.batch.sequences(), run.top().H}, dtype);
  dispatch(dtype, [&](auto t) {
    using T = decltype(t);
    backward_steps<T>(run, back);
    cell_weight_gradients<T>(run, back, d);
    if (run.plan.query_weight.defined()) {
      const Tensor before = previous_states(run.top());
      product_gradient<T>(back.d_q, matrix<const T>(before), d, kWq);
      bias_gradient<T>(back.d_q, d, kBq);
    }
    if (run.plan.output_weight.defined()) {
      product_gradient<T>(back.d_context, matrix<const T>(run.attended), d, kWo);
      bias_gradient<T>(back.d_context, d, kBo);
    }
    memory_gradients<T>(run, back, d);
  });
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

Run start(const Tensor& x, const Ragged& batch, const DecoderCells& cells, const AttentionPlan& plan) {
  Run run;
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
  // The memory in the order of time, so that step t reads its first count(t) sequences.
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
  Run run = start(x, batch, cells, plan);
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
  outs = record(kOp, outs, inputs, [run](const std::vector<Tensor>& d_outs, Grads& d) { backward(run, d_outs, d); });
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
