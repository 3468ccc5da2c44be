// Checks of an attention call, and the kernels' arguments for it.
#include "qkv/ops/attention_inputs.h"

#include <cmath>

#include "qkv/kernels/dropout.h"

namespace qkv {
namespace {

using kernels::AttentionDims;

const char* const kOp = "attention";

std::string shapes(const Tensor& q, const Tensor& k, const Tensor& v) {
  std::string s = "q=" + q.shape().str() + ", k=" + k.shape().str();
  return v.defined() ? s + ", v=" + v.shape().str() : s;
}

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
  for (const int64_t length : rule.key_lens) {
    if (length < 0 || length > n.Lk) {
      shape_error(kOp, "valid length " + std::to_string(length) + " outside [0, " + std::to_string(n.Lk) + "]");
    }
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

}  // namespace

AttentionDims dims_of(const Tensor& q, const Tensor& k, const Tensor& v, const ScoreRule& rule) {
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
kernels::ScoreArgs<T> score_args(const ScoreRule& rule, const AttentionDims& n) {
  check_rule(rule, n);
  kernels::ScoreArgs<T> r;
  const double plain = rule.additive.defined() ? 1.0 : 1.0 / std::sqrt(static_cast<double>(std::max<int64_t>(1, n.D)));
  r.scale = static_cast<T>(rule.scale.value_or(plain));
  r.softcap = static_cast<T>(rule.softcap);
  if (!std::isfinite(r.scale) || !std::isfinite(r.softcap)) {
    throw ConfigError("[attention] scale and softcap must be numbers that f32 can hold");
  }
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
    r.bias = score_array<T>("bias", rule.bias.data<T>(), rule.bias.shape(), rule.bias.strides(), n);
  }
  r.normaliser = rule.normaliser;
  r.additive = rule.additive.defined() ? rule.additive.data<T>() : nullptr;
  r.dropout_seed = rule.dropout_seed;
  r.dropout_threshold = kernels::weight_dropout_threshold(rule.dropout);
  r.keep_scale = static_cast<T>(1 / (1 - rule.dropout));
  return r;
}

template <class T>
kernels::AttentionInputs<T> inputs_of(const AttentionDims& n, const Tensor& q, const Tensor& k, const Tensor& v,
                                      const ScoreRule& rule) {
  kernels::AttentionInputs<T> in;
  in.dims = n;
  if (rule.bias.defined()) check_same_dtype(kOp, q, rule.bias);
  in.rule = score_args<T>(rule, n);
  in.q = strided<const T>(q, rule);
  in.k = strided<const T>(k, rule);
  in.v = strided<const T>(v, rule);
  if (packed(rule)) {
    in.q_offsets = rule.q_offsets.data();
    in.k_offsets = rule.k_offsets.data();
  }
  return in;
}

#define QKV_INSTANTIATE(T)                                                                                          \
  template kernels::ScoreArgs<T> score_args(const ScoreRule& rule, const AttentionDims& n);                         \
  template kernels::AttentionInputs<T> inputs_of(const AttentionDims&, const Tensor&, const Tensor&, const Tensor&, \
                                                 const ScoreRule&);
QKV_INSTANTIATE(float)
QKV_INSTANTIATE(double)
#undef QKV_INSTANTIATE

}  // namespace qkv
