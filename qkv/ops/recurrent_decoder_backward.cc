// The attending decoder's way back: through time step by step, then each weight's gradient in one product.
#include "qkv/core/autograd.h"
#include "qkv/ops/recurrent_decoder_run.h"

namespace qkv::rnn {
namespace {

template <class T>
void attention_gradients(const kernels::AttentionInputs<T>& in, const kernels::AttentionGrads<T>& grads) {
  kernels::attention_backward(in, grads);
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
void attend_backward(const DecoderRun& run, Back& back, int64_t t) {
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
  grads.out = heads_of<const T>(matrix<const T>(run.attended, at).data, run.heads, run.Dv);
  grads.lse = heads_of<const T>(matrix<const T>(run.lse, at).data, run.heads, 1);
  grads.d_out = heads_of<const T>(matrix<const T>(back.d_attended, at).data, run.heads, run.Dv);
  grads.d_q = heads_of<T>(matrix<T>(back.d_q, at).data, run.heads, run.D);
  attention_gradients<T>(step_inputs<T>(run, t), grads);
  if (run.plan.query_weight.defined()) {
    multiply<T>({n, H, run.heads * run.D}, matrix<const T>(back.d_q, at), matrix<const T>(run.plan.query_weight),
                matrix<T>(back.layers.back().d_h), true);
  } else {
    add_to<T>(matrix<const T>(back.d_q, at).data, back.layers.back().d_h.template data<T>(), n * H);
  }
}

template <class T>
void backward_steps(const DecoderRun& run, Back& back) {
  for (int64_t t = run.batch.longest() - 1; t >= 0; --t) {
    const int64_t n = run.batch.time().count(t), at = run.top().first(t);
    if (back.d_out.defined()) {
      add_to<T>(matrix<const T>(back.d_out, at).data, back.layers.back().d_h.template data<T>(), n * run.top().H);
    }
    for (size_t l = run.layers.size() - 1; l > 0; --l) {
      const LayerRun &layer = run.layers[l], &below = run.layers[l - 1];
      step_backward(layer, back.layers[l], t);
      T* d_input = back.d_input.data<T>();
      multiply<T>({n, below.H, layer.gate_width()}, matrix<const T>(back.layers[l].d_x_gates, at),
                  matrix<const T>(layer.w_ih), {d_input, below.H}, false);
      if (run.inputs[l].defined()) kernels::dropout(dropout_at(run, l, t), d_input, d_input, n * below.H);
      add_to<T>(d_input, back.layers[l - 1].d_h.template data<T>(), n * below.H);
    }
    step_backward(run.layers[0], back.layers[0], t);
    attend_backward<T>(run, back, t);
  }
}

// d_weight = d_yᵀ·input over all steps.
template <class T>
void product_gradient(const Tensor& d_y, RowMajor<const T> input, Grads& d, size_t weight) {
  if (!d.wants(weight)) return;
  bool fresh = false;
  Tensor d_w = d.buffer(weight, fresh);
  weight_product<T>({d_w.dim(0), d_w.dim(1), d_y.dim(0)}, matrix<const T>(d_y), input, matrix<T>(d_w), !fresh);
}

// W_ih of layer 0 reads [x ; c]: its columns' gradients, one product each.
template <class T>
void joint_input_gradient(const DecoderRun& run, const Tensor& d_gates, Grads& d) {
  if (!d.wants(kLayers)) return;
  bool fresh = false;
  Tensor d_w = d.buffer(kLayers, fresh);
  const int64_t G = d_w.dim(0), rows = d_gates.dim(0);
  weight_product<T>({G, run.E, rows}, matrix<const T>(d_gates), matrix<const T>(run.x), matrix<T>(d_w), !fresh);
  weight_product<T>({G, run.W, rows}, matrix<const T>(d_gates), matrix<const T>(run.context), matrix<T>(d_w, 0, run.E),
                    !fresh);
}

template <class T>
void bias_gradient(const Tensor& d_y, Grads& d, size_t bias) {
  if (!d.wants(bias)) return;
  bool fresh = false;
  Tensor d_b = d.buffer(bias, fresh);
  kernels::sum_rows(kernels::SumRows<T>{d_y.dim(0), d_y.dim(1), d_y.data<T>(), d_b.data<T>(), !fresh});
}

template <class T>
void cell_weight_gradients(const DecoderRun& run, const Back& back, Grads& d) {
  const LayerRun& first = run.layers[0];
  const Tensor& d_gates = back.layers[0].d_x_gates;
  if (d.wants(kX)) {
    Tensor d_x = Tensor::empty(run.x.shape(), run.x.dtype());
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
    weight_gradients(layer, back.layers[l], back.layers[l].d_x_gates, {at + 1, at + 2, at + 3}, d);
    if (d.wants(at + 4)) d.add(at + 4, in_batch_order(back.layers[l].d_h, run.batch.time()));
    if (d.wants(at + 5)) d.add(at + 5, in_batch_order(back.layers[l].d_c, run.batch.time()));
  }
}

// Gradients of keys, values and the additive score's weight: one pass over whole sequences, in the batch's order.
template <class T>
void memory_gradients(const DecoderRun& run, const Back& back, Grads& d) {
  if (!d.wants(kKeys) && !d.wants(kValues) && !d.wants(kAdditive)) return;
  const std::vector<int64_t>& rows = run.batch.time().forward_rows;
  const auto packed = [&](const Tensor& t) { return place_rows(t, rows); };
  const Tensor q = packed(run.q.defined() ? run.q : previous_states(run.top()));
  const Tensor out = packed(run.attended), lse = packed(run.lse), d_out = packed(back.d_attended);
  const auto wanted = [&](size_t i, const Tensor& like) {
    return d.wants(i) ? Tensor::empty(like.shape(), like.dtype()) : Tensor();
  };
  Tensor d_k = wanted(kKeys, run.plan.keys), d_v = wanted(kValues, run.plan.values);
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

}  // namespace

void decoder_backward(const DecoderRun& run, const std::vector<Tensor>& d_outs, Grads& d) {
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

}  // namespace qkv::rnn
