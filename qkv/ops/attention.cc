// The attention op: checks, the call into the kernels, and what backward keeps (q, k, v, out and one number per row).
#include "qkv/ops/attention.h"

#include <algorithm>

#include "qkv/base/budget.h"
#include "qkv/ops/attention_inputs.h"
#include "qkv/ops/attention_pass.h"
#include "qkv/ops/ops.h"

namespace qkv {
namespace {

using kernels::AttentionDims;

const char* const kOp = "attention";

// The last axis must be contiguous for the kernels.
Tensor rows_dense(const Tensor& t) {
  return t.rank() == 0 || t.strides()[-1] == 1 || t.dim(-1) <= 1 ? t.detach() : t.clone();
}

// One number per row, [B,H,Lq] (packed [Tq,H]).
Shape row_shape(const AttentionDims& n, const Tensor& q, const ScoreRule& rule) {
  return packed(rule) ? Shape{q.dim(0), n.H} : Shape{n.B, n.H, n.Lq};
}

// The rule with its tensors detached and dense, so that a recorded closure can keep it.
ScoreRule settled(const ScoreRule& rule) {
  ScoreRule r = rule;
  if (r.bias.defined()) r.bias = dense(r.bias);
  if (r.additive.defined()) r.additive = dense(r.additive);
  return r;
}

// How many keys a row of a mask shows, when they stand before those it hides; -1 when they do not.
int64_t length_of(const uint8_t* row, int64_t keys) {
  const uint8_t* const end = std::find(row, row + keys, 0);
  return std::all_of(end, row + keys, [](uint8_t seen) { return seen == 0; }) ? end - row : -1;
}

// A mask that only pads, one row of keys for each sequence or for all, as lengths: the kernels then leave out what is
// hidden in place of computing it.
void pad_by_lengths(ScoreRule& rule, const AttentionDims& n) {
  if (!rule.mask.defined() || !rule.key_lens.empty() || rule.mask.shape.rank() == 0) return;
  const Shape& shape = rule.mask.shape;
  const int64_t keys = shape[-1], rows = shape.rank() == 4 ? shape[0] : 1;
  if (keys < 1 || keys > n.Lk || (keys == 1 && n.Lk > 1) || (rows != 1 && rows != n.B) || shape.numel() != rows * keys)
    return;
  std::vector<int64_t> lens;
  for (int64_t b = 0; b < n.B; ++b) {
    lens.push_back(length_of(rule.mask.values->data() + (rows == 1 ? 0 : b * keys), keys));
    if (lens.back() < 0) return;
  }
  rule.key_lens = std::move(lens);
  rule.mask = {};
}

}  // namespace

BoolMask bool_mask(std::vector<uint8_t> values, const Shape& shape) {
  if (static_cast<int64_t>(values.size()) != shape.numel()) {
    shape_error("bool_mask", std::to_string(values.size()) + " values do not fill " + shape.str());
  }
  return {shape, std::make_shared<const std::vector<uint8_t>>(std::move(values))};
}

AttentionPass::AttentionPass(const Tensor& q_in, const Tensor& k_in, const Tensor& v_in, const ScoreRule& rule_in) {
  check_defined(kOp, v_in);
  dims = dims_of(q_in, k_in, v_in, rule_in);
  q = rows_dense(q_in);
  k = rows_dense(k_in);
  v = rows_dense(v_in);
  rule = settled(rule_in);
  pad_by_lengths(rule, dims);
}

void AttentionPass::forward(bool keep_lse) {
  Shape out_shape = q.shape();
  out_shape[-1] = dims.Dv;
  out = Tensor::empty(out_shape, q.dtype());
  if (keep_lse) lse = Tensor::empty(row_shape(dims, q, rule), q.dtype());
  dispatch(q.dtype(), [&](auto t) {
    using T = decltype(t);
    kernels::attention_forward(inputs_of<T>(dims, q, k, v, rule), {strided<T>(out, rule), row_strided<T>(lse, rule)});
  });
}

void AttentionPass::backward(const Tensor& d_out_in, AttentionDestinations to) const {
  const Tensor d_out = rows_dense(d_out_in);
  dispatch(q.dtype(), [&](auto t) {
    using T = decltype(t);
    kernels::AttentionGrads<T> grads;
    grads.out = strided<const T>(out, rule);
    grads.lse = row_strided<const T>(lse, rule);
    grads.d_out = strided<const T>(d_out, rule);
    grads.d_q = strided<T>(to.d_q, rule);
    grads.d_k = strided<T>(to.d_k, rule);
    grads.d_v = strided<T>(to.d_v, rule);
    grads.d_bias = to.d_bias.defined() ? to.d_bias.data<T>() : nullptr;
    grads.d_additive = to.d_additive.defined() ? to.d_additive.data<T>() : nullptr;
    kernels::attention_backward(inputs_of<T>(dims, q, k, v, rule), grads);
  });
}

Tensor attention(const Tensor& q_in, const Tensor& k_in, const Tensor& v_in, const ScoreRule& rule_in) {
  AttentionPass pass(q_in, k_in, v_in, rule_in);
  const bool recorded = needs_record({q_in, k_in, v_in, rule_in.bias, rule_in.additive});
  pass.forward(recorded);
  if (!recorded) return pass.out;
  // Weights are rebuilt tile by tile from lse, so memory stays linear in length.
  return record(
      kOp, pass.out, {q_in, k_in, v_in, rule_in.bias, rule_in.additive}, [pass](const Tensor& d_out, Grads& d) {
        const auto wanted = [&](size_t i, const Tensor& like) {
          return d.wants(i) ? Tensor::empty(like.shape(), like.dtype()) : Tensor();
        };
        const AttentionDestinations to{wanted(0, pass.q), wanted(1, pass.k), wanted(2, pass.v),
                                       d.wants(3) ? d.buffer(3) : Tensor(), d.wants(4) ? d.buffer(4) : Tensor()};
        pass.backward(d_out, to);
        if (to.d_q.defined()) d.add(0, to.d_q);
        if (to.d_k.defined()) d.add(1, to.d_k);
        if (to.d_v.defined()) d.add(2, to.d_v);
      });
}

Tensor self_attention(const Tensor& qkv_in, int64_t H, int64_t Hkv, const ScoreRule& rule_in) {
  check_defined("self_attention", qkv_in);
  const int64_t parts = H + 2 * Hkv;
  if (qkv_in.rank() != 2 || H < 1 || Hkv < 1 || qkv_in.dim(1) % parts != 0) {
    shape_error("self_attention", "qkv=" + qkv_in.shape().str() + " does not hold " + std::to_string(H) +
                                      " query and 2·" + std::to_string(Hkv) + " key and value heads");
  }
  const Tensor qkv = rows_dense(qkv_in);
  const int64_t T = qkv.dim(0), D = qkv.dim(1) / parts;
  ScoreRule rule = rule_in;
  if (rule.q_offsets.empty()) rule.q_offsets = {0, T};
  rule.k_offsets = rule.q_offsets;
  // Heads [first, first + count) of a fused matrix, as a view [T, count, D].
  const auto heads = [=](const Tensor& m, int64_t first, int64_t count) {
    return m.as_strided({T, count, D}, {m.strides()[0], D, 1}, m.storage_offset() + first * D);
  };
  AttentionPass pass(heads(qkv, 0, H), heads(qkv, H, Hkv), heads(qkv, H + Hkv, Hkv), rule);
  const bool recorded = needs_record({qkv_in, rule_in.bias});
  pass.forward(recorded);
  const Tensor flat = pass.out.as_strided({T, H * D}, {H * D, 1}, 0);
  if (!recorded) return flat;
  return record("self_attention", flat, {qkv_in, rule_in.bias}, [=](const Tensor& d_out, Grads& d) {
    const Tensor d_qkv = Tensor::empty(qkv.shape(), qkv.dtype());
    pass.backward(heads(rows_dense(d_out), 0, H), {heads(d_qkv, 0, H),
                                                   heads(d_qkv, H, Hkv),
                                                   heads(d_qkv, H + Hkv, Hkv),
                                                   d.wants(1) ? d.buffer(1) : Tensor(),
                                                   {}});
    d.add(0, d_qkv);
  });
}

Tensor attention_scores(const Tensor& q_in, const Tensor& k_in, const ScoreRule& rule_in, const ScoreWindow& window) {
  const AttentionDims n = dims_of(q_in, k_in, {}, rule_in);
  const Tensor q = rows_dense(q_in), k = rows_dense(k_in);
  const ScoreRule rule = settled(rule_in);
  if (window.b < 0 || window.b >= n.B || window.h < 0 || window.h >= n.H || window.row_begin < 0 ||
      window.row_begin > window.row_end || window.row_end > n.Lq) {
    shape_error("attention_scores", "window outside " + Shape{n.B, n.H, n.Lq, n.Lk}.str());
  }
  Tensor out = Tensor::zeros({window.row_end - window.row_begin, n.Lk}, q.dtype());
  dispatch(q.dtype(), [&](auto t) {
    using T = decltype(t);
    kernels::attention_scores(inputs_of<T>(n, q, k, {}, rule), window, out.data<T>());
  });
  check_budget();
  return out;
}

Tensor attention_score_array(const Tensor& q, const Tensor& k, const ScoreRule& rule, ScoreStage stage) {
  const AttentionDims n = dims_of(q, k, {}, rule);
  if (packed(rule)) shape_error("attention_score_array", "packed batches have no one array; use attention_scores");
  Tensor out = Tensor::empty({n.B, n.H, n.Lq, n.Lk}, q.dtype());
  for (int64_t b = 0; b < n.B; ++b) {
    for (int64_t h = 0; h < n.H; ++h) {
      const Tensor part =
          attention_scores(q, k, rule, {.b = b, .h = h, .row_begin = 0, .row_end = n.Lq, .stage = stage});
      slice(slice(out, 0, b, b + 1), 1, h, h + 1).copy_from(reshape(part, {1, 1, n.Lq, n.Lk}));
    }
  }
  return out;
}

AttentionStatistics attention_statistics(const Tensor& q_in, const Tensor& k_in, const ScoreRule& rule_in) {
  const AttentionDims n = dims_of(q_in, k_in, {}, rule_in);
  const Tensor q = rows_dense(q_in), k = rows_dense(k_in);
  const ScoreRule rule = settled(rule_in);
  const Shape rows = row_shape(n, q, rule);
  AttentionStatistics s;
  for (Tensor* t : {&s.lse, &s.entropy, &s.max_weight, &s.argmax, &s.mean_distance})
    *t = Tensor::empty(rows, q.dtype());
  dispatch(q.dtype(), [&](auto t) {
    using T = decltype(t);
    const kernels::AttentionStats<T> stats{row_strided<T>(s.entropy, rule), row_strided<T>(s.max_weight, rule),
                                           row_strided<T>(s.argmax, rule), row_strided<T>(s.mean_distance, rule),
                                           row_strided<T>(s.lse, rule)};
    kernels::attention_stats(inputs_of<T>(n, q, k, {}, rule), stats);
  });
  return s;
}

Tensor extend_cache(const Tensor& past, const Tensor& fresh) {
  check_defined("extend_cache", fresh);
  return past.defined() ? concat({past, fresh}, -2) : fresh;
}

}  // namespace qkv
