// What the forward and backward passes of the attending decoder share. Not a public header.
#pragma once

#include "qkv/ops/attention_inputs.h"
#include "qkv/ops/recurrent_decoder.h"
#include "qkv/ops/recurrent_layer.h"

namespace qkv::rnn {

/// The op's inputs, in this order; then kPerLayer of each layer: w_ih, w_hh, b_ih, b_hh, h, c.
enum DecoderInput : size_t { kX, kKeys, kValues, kWq, kBq, kWo, kBo, kAdditive, kLayers };
constexpr size_t kPerLayer = 6;

/// Everything of one run, time-major but for the memory, which is kept in the batch's order and in time order.
struct DecoderRun {
  Ragged batch;
  std::vector<LayerRun> layers;
  std::vector<Tensor> inputs;  // of layer l ≥ 1 after dropout, [T, H]; undefined without dropout
  kernels::DropoutRule drop;
  int64_t E = 0, W = 0, heads = 1, kv_heads = 1, D = 0, Dv = 0;
  AttentionPlan plan;                   // dense and without history
  Tensor keys, values;                  // [Tk, Hkv·D], [Tk, Hkv·Dv] in time order
  std::vector<int64_t> row_at, key_at;  // offsets of one query per sequence, and of the keys in time order
  Tensor x;                             // [T, E]
  Tensor q;                             // [T, heads·D]; undefined when the state itself is the query
  Tensor attended, lse;                 // [T, heads·Dv], [T, heads]
  Tensor context;                       // [T, W]

  const LayerRun& top() const { return layers.back(); }
};

template <class T>
kernels::Strided<T> heads_of(T* data, int64_t heads, int64_t width) {
  return {data, 0, width, heads * width};
}

/// The kernels' arguments for queries and keys packed as the offsets say.
template <class T>
kernels::AttentionInputs<T> attention_inputs(const DecoderRun& run, const std::vector<int64_t>& q_at,
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
  in.rule = score_args<T>(run.plan.rule, in.dims);
  return in;
}

/// The query rows of step t: projected ones, or the top layer's state before the step.
template <class T>
const T* query_rows(const DecoderRun& run, int64_t t) {
  return run.q.defined() ? matrix<const T>(run.q, run.top().first(t)).data
                         : matrix<const T>(run.top().h, run.top().previous(t)).data;
}

template <class T>
kernels::AttentionInputs<T> step_inputs(const DecoderRun& run, int64_t t) {
  auto in = attention_inputs<T>(run, run.row_at, run.key_at, run.batch.time().count(t));
  in.q = heads_of<const T>(query_rows<T>(run, t), run.heads, run.D);
  in.k = heads_of<const T>(run.keys.data<T>(), run.kv_heads, run.D);
  in.v = heads_of<const T>(run.values.data<T>(), run.kv_heads, run.Dv);
  return in;
}

inline kernels::DropoutRule dropout_at(const DecoderRun& run, size_t layer, int64_t t) {
  kernels::DropoutRule rule = run.drop;
  rule.seed = mix64(rule.seed + mix64(static_cast<uint64_t>(t) * 64 + layer));
  return rule;
}

/// What layer l ≥ 1 reads at step t.
template <class T>
const T* layer_input(const DecoderRun& run, size_t l, int64_t t) {
  const LayerRun& below = run.layers[l - 1];
  return run.inputs[l].defined() ? matrix<const T>(run.inputs[l], below.first(t)).data
                                 : matrix<const T>(below.h, below.current(t)).data;
}

/// Gradients of everything the op was given; d_outs are those of out, context, and each layer's h (and c).
void decoder_backward(const DecoderRun& run, const std::vector<Tensor>& d_outs, Grads& d);

}  // namespace qkv::rnn
