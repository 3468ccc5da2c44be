// The attention op: checks, the call into the kernels, and what backward keeps (q, k, v, out and one number a row).
#include "qkv/ops/attention.h"

#include <cmath>

#include "qkv/base/budget.h"
#include "qkv/kernels/attention/attention.h"
#include "qkv/kernels/dropout.h"
#include "qkv/ops/common.h"
#include "qkv/ops/ops.h"

namespace qkv {
namespace {

using kernels::AttentionDims;
using kernels::AttentionInputs;

const char* const kOp = "attention";

std::string shapes(const Tensor& q, const Tensor& k, const Tensor& v) {
  std::string s = "q=" + q.shape().str() + ", k=" + k.shape().str();
  return v.defined() ? s + ", v=" + v.shape().str() : s;
}

// The last axis must be contiguous for the kernels.
Tensor rows_dense(const Tensor& t) { return t.strides()[-1] == 1 || t.dim(-1) <= 1 ? t.detach() : t.clone(); }

bool packed(const ScoreRule& rule) { return !rule.q_offsets.empty() || !rule.k_offsets.empty(); }

int64_t longest(const std::vector<int64_t>& offsets, int64_t rows, const char* which) {
  if (offsets.size() < 2 || offsets.front() != 0 || offsets.back() != rows) {
    shape_error(kOp, std::string(which) + " must run from 0 to the number of rows, " + std::to_string(rows));
  }
  int64_t n = 0;
  for (size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] < offsets[i - 1]) shape_error(kOp, std::string(which) + " must not decrease");
    n = std::max(n, offsets[i] - offsets[i - 1]);
  }
  return n;
}

// Sizes of a call; v may be undefined (scores and statistics only).
AttentionDims dims_of(const Tensor& q, const Tensor& k, const Tensor& v, const ScoreRule& rule) {
  for (const Tensor& t : {q, k}) check_defined(kOp, t);
  check_same_dtype(kOp, q, k);
  if (v.defined()) check_same_dtype(kOp, q, v);
  const int rank = q.rank();
  if ((rank != 3 && rank != 4) || k.rank() != rank || (v.defined() && v.rank() != rank) ||
      (packed(rule) && rank != 3)) {
    shape_error(kOp, shapes(q, k, v) + "; expected [B,H,L,D], [B,L,D] or, packed, [T,H,D]");
  }
  AttentionDims n;
  if (packed(rule)) {
    if (rule.q_offsets.size() != rule.k_offsets.size()) shape_error(kOp, "q_offsets and k_offsets differ in length");
    n.B = static_cast<int64_t>(rule.q_offsets.size()) - 1;
    n.H = q.dim(1);
    n.Hkv = k.dim(1);
    n.Lq = longest(rule.q_offsets, q.dim(0), "q_offsets");
    n.Lk = longest(rule.k_offsets, k.dim(0), "k_offsets");
  } else {
    n.B = q.dim(0);
    n.H = rank == 4 ? q.dim(1) : 1;
    n.Hkv = rank == 4 ? k.dim(1) : 1;
    n.Lq = q.dim(-2);
    n.Lk = k.dim(-2);
    if (k.dim(0) != n.B || (v.defined() && v.dim(0) != n.B)) shape_error(kOp, "batch sizes differ: " + shapes(q, k, v));
  }
  n.D = q.dim(-1);
  n.Dv = v.defined() ? v.dim(-1) : n.D;
  if (k.dim(-1) != n.D) shape_error(kOp, "head sizes differ: " + shapes(q, k, v) + "; expected q.dim(-1) == k.dim(-1)");
  if (n.Hkv == 0 || n.H % n.Hkv != 0) {
    shape_error(kOp, "query heads must be a multiple of key heads: " + shapes(q, k, v));
  }
  if (v.defined()) {
    for (int i = 0; i < rank - 1; ++i) {
      if (v.dim(i) != k.dim(i)) shape_error(kOp, "keys and values differ: " + shapes(q, k, v));
    }
  }
  return n;
}

template <class T>
kernels::Strided<T> strided(TensorOf<T>& t, const ScoreRule& rule) {
  kernels::Strided<T> s;
  if (!t.defined()) return s;
  s.data = t.template data<std::remove_const_t<T>>();
  if (packed(rule)) {
    s.l_stride = t.strides()[0];
    s.h_stride = t.strides()[1];
  } else {
    s.b_stride = t.strides()[0];
    s.h_stride = t.rank() == 4 ? t.strides()[1] : 0;
    s.l_stride = t.strides()[-2];
  }
  return s;
}

// One number a row, [B,H,Lq] (packed [Tq,H]).
Shape row_shape(const AttentionDims& n, const Tensor& q, const ScoreRule& rule) {
  return packed(rule) ? Shape{q.dim(0), n.H} : Shape{n.B, n.H, n.Lq};
}
template <class T>
kernels::Strided<T> row_strided(TensorOf<T>& t, const ScoreRule& rule) {
  kernels::Strided<T> s;
  if (!t.defined()) return s;
  s.data = t.template data<std::remove_const_t<T>>();
  if (packed(rule)) {
    s.l_stride = t.strides()[0];
    s.h_stride = t.strides()[1];
  } else {
    s.b_stride = t.strides()[0];
    s.h_stride = t.strides()[1];
    s.l_stride = t.strides()[2];
  }
  return s;
}

// Strides of an array broadcast right-aligned to [B,H,Lq,Lk]; a last axis shorter than Lk sets cols.
template <class T>
kernels::ScoreArray<T> score_array(const char* what, const T* data, const Shape& shape, const Shape& strides,
                                   const AttentionDims& n) {
  const int64_t target[4] = {n.B, n.H, n.Lq, n.Lk};
  const auto fail = [&] {
    shape_error(kOp,
                std::string(what) + "=" + shape.str() + " does not broadcast to " + Shape{n.B, n.H, n.Lq, n.Lk}.str());
  };
  if (shape.rank() > 4) fail();
  kernels::ScoreArray<T> a;
  a.data = data;
  a.cols = n.Lk;
  int64_t* const out[4] = {&a.b_stride, &a.h_stride, &a.q_stride, &a.k_stride};
  for (int axis = 0; axis < 4; ++axis) {
    const int at = axis - (4 - shape.rank());
    if (at < 0 || (shape[at] == 1 && (target[axis] != 1 || axis < 3))) continue;
    *out[axis] = strides[at];
    if (axis == 3 && shape[at] < n.Lk) {
      a.cols = shape[at];
    } else if (shape[at] != target[axis]) {
      fail();
    }
  }
  return a;
}

void check_rule(const ScoreRule& rule, const AttentionDims& n) {
  const auto B = static_cast<size_t>(n.B), rows = static_cast<size_t>(n.B * n.Lq);
  if (!rule.batch_offsets.empty() && rule.batch_offsets.size() != B) {
    shape_error(kOp, std::to_string(rule.batch_offsets.size()) + " offsets for a batch of " + std::to_string(B));
  }
  if (!rule.key_lens.empty() && rule.key_lens.size() != B && rule.key_lens.size() != rows) {
    shape_error(kOp, std::to_string(rule.key_lens.size()) + " valid lengths for B=" + std::to_string(n.B) +
                         ", Lq=" + std::to_string(n.Lq) + "; expected B or B·Lq");
  }
  if (rule.scale && !std::isfinite(*rule.scale)) throw ConfigError("[attention] scale must be a finite number");
  if (!(rule.softcap >= 0) || !std::isfinite(rule.softcap)) throw ConfigError("[attention] softcap must be at least 0");
  if (!(rule.dropout >= 0 && rule.dropout < 1)) throw ConfigError("[attention] dropout must be in [0, 1)");
  if (rule.window_left < -1 || rule.window_right < -1) {
    throw ConfigError("[attention] a window must be at least 0, or -1 for unlimited");
  }
  if (rule.additive.defined() && !(rule.additive.shape() == Shape{n.D})) {
    shape_error(kOp, "additive weight " + rule.additive.shape().str() + " for width " + std::to_string(n.D));
  }
}

// The kernels' arguments. `rule` must outlive them: they point into its vectors.
template <class T>
AttentionInputs<T> inputs_of(const Tensor& q, const Tensor& k, const Tensor& v, const ScoreRule& rule) {
  AttentionInputs<T> in;
  in.dims = dims_of(q, k, v, rule);
  const AttentionDims& n = in.dims;
  check_rule(rule, n);
  in.q = strided<const T>(q, rule);
  in.k = strided<const T>(k, rule);
  in.v = strided<const T>(v, rule);
  if (packed(rule)) {
    in.q_offsets = rule.q_offsets.data();
    in.k_offsets = rule.k_offsets.data();
  }
  auto& r = in.rule;
  const double plain = rule.additive.defined() ? 1.0 : 1.0 / std::sqrt(static_cast<double>(std::max<int64_t>(1, n.D)));
  r.scale = static_cast<T>(rule.scale.value_or(plain));
  r.softcap = static_cast<T>(rule.softcap);
  r.causal = rule.causal;
  r.offset = rule.offset;
  r.batch_offsets = rule.batch_offsets.empty() ? nullptr : rule.batch_offsets.data();
  r.window_left = rule.window_left;
  r.window_right = rule.window_right;
  if (!rule.key_lens.empty()) {
    const bool per_row = rule.key_lens.size() != static_cast<size_t>(n.B);
    r.key_lens = rule.key_lens.data();
    r.lens_b_stride = per_row ? n.Lq : 1;
    r.lens_q_stride = per_row ? 1 : 0;
  }
  if (rule.mask.defined()) {
    r.mask = score_array("mask", rule.mask.values->data(), rule.mask.shape, rule.mask.shape.contiguous_strides(), n);
  }
  if (rule.bias.defined()) {
    check_same_dtype(kOp, q, rule.bias);
    r.bias = score_array<T>("bias", rule.bias.data<T>(), rule.bias.shape(), rule.bias.strides(), n);
  }
  r.normaliser = rule.normaliser;
  r.additive = rule.additive.defined() ? rule.additive.data<T>() : nullptr;
  r.dropout_seed = rule.dropout_seed;
  r.dropout_threshold = kernels::weight_dropout_threshold(rule.dropout);
  r.keep_scale = static_cast<T>(1 / (1 - rule.dropout));
  return in;
}

template <class T>
void forward(const AttentionInputs<T>& in, const kernels::AttentionOutputs<T>& out) {
  if constexpr (std::is_same_v<T, float>) {
    kernels::attention_forward(in, out);
  } else {
    kernels::reference::attention_forward(in, out);
  }
}

template <class T>
void backward(const AttentionInputs<T>& in, const kernels::AttentionGrads<T>& grads) {
  if constexpr (std::is_same_v<T, float>) {
    kernels::attention_backward(in, grads);
  } else {
    kernels::reference::attention_backward(in, grads);
  }
}

// The rule with its tensors detached and dense, so that a recorded closure can keep it.
ScoreRule settled(const ScoreRule& rule) {
  ScoreRule r = rule;
  if (r.bias.defined()) r.bias = dense(r.bias);
  if (r.additive.defined()) r.additive = dense(r.additive);
  return r;
}

// What forward leaves for backward.
struct Saved {
  Tensor q, k, v, out, lse;
  ScoreRule rule;
};

// Where the gradients go; undefined ones are not computed.
struct Destinations {
  Tensor d_q, d_k, d_v, d_bias, d_additive;
};

void run_backward(const Saved& s, const Tensor& d_out, Destinations to) {
  dispatch(s.q.dtype(), [&](auto t) {
    using T = decltype(t);
    kernels::AttentionGrads<T> grads;
    grads.out = strided<const T>(s.out, s.rule);
    grads.lse = row_strided<const T>(s.lse, s.rule);
    grads.d_out = strided<const T>(d_out, s.rule);
    grads.d_q = strided<T>(to.d_q, s.rule);
    grads.d_k = strided<T>(to.d_k, s.rule);
    grads.d_v = strided<T>(to.d_v, s.rule);
    grads.d_bias = to.d_bias.defined() ? to.d_bias.data<T>() : nullptr;
    grads.d_additive = to.d_additive.defined() ? to.d_additive.data<T>() : nullptr;
    backward<T>(inputs_of<T>(s.q, s.k, s.v, s.rule), grads);
  });
}

}  // namespace

BoolMask bool_mask(std::vector<uint8_t> values, const Shape& shape) {
  if (static_cast<int64_t>(values.size()) != shape.numel()) {
    shape_error("bool_mask", std::to_string(values.size()) + " values do not fill " + shape.str());
  }
  return {shape, std::make_shared<const std::vector<uint8_t>>(std::move(values))};
}

Tensor attention(const Tensor& q_in, const Tensor& k_in, const Tensor& v_in, const ScoreRule& rule_in) {
  check_defined(kOp, v_in);
  const AttentionDims n = dims_of(q_in, k_in, v_in, rule_in);
  const Tensor q = rows_dense(q_in), k = rows_dense(k_in), v = rows_dense(v_in);
  const ScoreRule rule = settled(rule_in);
  Shape out_shape = q.shape();
  out_shape[-1] = n.Dv;
  Tensor out = Tensor::empty(out_shape, q.dtype());  // [B,H,Lq,Dv]
  const bool recorded = needs_record({q_in, k_in, v_in, rule_in.bias, rule_in.additive});
  Tensor lse = recorded ? Tensor::empty(row_shape(n, q, rule), q.dtype()) : Tensor();  // [B,H,Lq]
  dispatch(q.dtype(), [&](auto t) {
    using T = decltype(t);
    forward<T>(inputs_of<T>(q, k, v, rule), {strided<T>(out, rule), row_strided<T>(lse, rule)});
  });
  if (!recorded) return out;
  // Weights are rebuilt tile by tile from lse, so memory stays linear in length.
  const Saved saved{q, k, v, out, lse, rule};
  return record(kOp, out, {q_in, k_in, v_in, rule_in.bias, rule_in.additive}, [=](const Tensor& d_out_in, Grads& d) {
    const Tensor d_out = rows_dense(d_out_in);
    const auto wanted = [&](size_t i, const Tensor& like) {
      return d.wants(i) ? Tensor::empty(like.shape(), like.dtype()) : Tensor();
    };
    const Tensor d_q = wanted(0, q), d_k = wanted(1, k), d_v = wanted(2, v);
    const Tensor d_bias = d.wants(3) ? d.buffer(3) : Tensor();
    const Tensor d_additive = d.wants(4) ? d.buffer(4) : Tensor();
    run_backward(saved, d_out, {d_q, d_k, d_v, d_bias, d_additive});
    if (d_q.defined()) d.add(0, d_q);
    if (d_k.defined()) d.add(1, d_k);
    if (d_v.defined()) d.add(2, d_v);
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
  ScoreRule rule = settled(rule_in);
  if (rule.q_offsets.empty()) rule.q_offsets = {0, T};
  rule.k_offsets = rule.q_offsets;
  // Heads [first, first + count) of a fused matrix, as a view [T, count, D].
  const auto heads = [=](const Tensor& m, int64_t first, int64_t count) {
    return m.as_strided({T, count, D}, {m.strides()[0], D, 1}, m.storage_offset() + first * D);
  };
  const Tensor q = heads(qkv, 0, H), k = heads(qkv, H, Hkv), v = heads(qkv, H + Hkv, Hkv);
  Tensor out = Tensor::empty({T, H, D}, qkv.dtype());
  const bool recorded = needs_record({qkv_in, rule_in.bias});
  Tensor lse = recorded ? Tensor::empty({T, H}, qkv.dtype()) : Tensor();
  dispatch(qkv.dtype(), [&](auto t) {
    using V = decltype(t);
    forward<V>(inputs_of<V>(q, k, v, rule), {strided<V>(out, rule), row_strided<V>(lse, rule)});
  });
  const Tensor flat = out.as_strided({T, H * D}, {H * D, 1}, 0);
  if (!recorded) return flat;
  const Saved saved{q, k, v, out, lse, rule};
  return record("self_attention", flat, {qkv_in, rule_in.bias}, [=](const Tensor& d_out_in, Grads& d) {
    const Tensor d_out = heads(rows_dense(d_out_in), 0, H);
    const Tensor d_qkv = Tensor::empty(qkv.shape(), qkv.dtype());
    run_backward(saved, d_out,
                 {heads(d_qkv, 0, H),
                  heads(d_qkv, H, Hkv),
                  heads(d_qkv, H + Hkv, Hkv),
                  d.wants(1) ? d.buffer(1) : Tensor(),
                  {}});
    d.add(0, d_qkv);
  });
}

Tensor attention_scores(const Tensor& q_in, const Tensor& k_in, const ScoreRule& rule_in, const ScoreWindow& window) {
  const Tensor q = rows_dense(q_in), k = rows_dense(k_in);
  const ScoreRule rule = settled(rule_in);
  const AttentionDims n = dims_of(q, k, {}, rule);
  if (window.b < 0 || window.b >= n.B || window.h < 0 || window.h >= n.H || window.row_begin < 0 ||
      window.row_begin > window.row_end || window.row_end > n.Lq) {
    shape_error("attention_scores", "window outside " + Shape{n.B, n.H, n.Lq, n.Lk}.str());
  }
  Tensor out = Tensor::zeros({window.row_end - window.row_begin, n.Lk}, q.dtype());
  dispatch(q.dtype(), [&](auto t) {
    using T = decltype(t);
    if constexpr (std::is_same_v<T, float>) {
      kernels::attention_scores(inputs_of<T>(q, k, {}, rule), window, out.data<T>());
    } else {
      kernels::reference::attention_scores(inputs_of<T>(q, k, {}, rule), window, out.data<T>());
    }
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
  const Tensor q = rows_dense(q_in), k = rows_dense(k_in);
  const ScoreRule rule = settled(rule_in);
  const AttentionDims n = dims_of(q, k, {}, rule);
  const Shape rows = row_shape(n, q, rule);
  AttentionStatistics s;
  for (Tensor* t : {&s.lse, &s.entropy, &s.max_weight, &s.argmax, &s.mean_distance})
    *t = Tensor::empty(rows, q.dtype());
  dispatch(q.dtype(), [&](auto t) {
    using T = decltype(t);
    const kernels::AttentionStats<T> stats{row_strided<T>(s.entropy, rule), row_strided<T>(s.max_weight, rule),
                                           row_strided<T>(s.argmax, rule), row_strided<T>(s.mean_distance, rule),
                                           row_strided<T>(s.lse, rule)};
    if constexpr (std::is_same_v<T, float>) {
      kernels::attention_stats(inputs_of<T>(q, k, {}, rule), stats);
    } else {
      kernels::reference::attention_stats(inputs_of<T>(q, k, {}, rule), stats);
    }
  });
  return s;
}

Tensor extend_cache(const Tensor& past, const Tensor& fresh) {
  return past.defined() ? concat({past, fresh}, -2) : fresh;
}

}  // namespace qkv
