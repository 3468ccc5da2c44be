// From tensors and a rule to the arguments of the attention kernels: the one place that knows both. Not a public
// header.
#pragma once

#include "qkv/kernels/attention/attention.h"
#include "qkv/ops/attention.h"
#include "qkv/ops/common.h"

namespace qkv {

inline bool packed(const ScoreRule& rule) { return !rule.q_offsets.empty() || !rule.k_offsets.empty(); }

/// Sizes of a call; v may be undefined (scores and statistics only). Throws ShapeError.
kernels::AttentionDims dims_of(const Tensor& q, const Tensor& k, const Tensor& v, const ScoreRule& rule);

/// The rule as kernels take it, for a call of these sizes. `rule` must outlive it: it points into its vectors and
/// tensors. Throws ShapeError, ConfigError.
template <class T>
kernels::ScoreArgs<T> score_args(const ScoreRule& rule, const kernels::AttentionDims& n);

/// All arguments of a call of the sizes that dims_of() gave; `rule` must outlive them too.
template <class T>
kernels::AttentionInputs<T> inputs_of(const kernels::AttentionDims& n, const Tensor& q, const Tensor& k,
                                      const Tensor& v, const ScoreRule& rule);

/// A tensor of rows, [B,H,L,…], packed [T,H,…] or, without heads, [B,L,…]; undefined: null.
template <class T>
kernels::Strided<T> rows_of(TensorOf<T>& t, const ScoreRule& rule, bool heads) {
  kernels::Strided<T> s;
  if (!t.defined()) return s;
  s.data = t.template data<std::remove_const_t<T>>();
  if (packed(rule)) {
    s.l_stride = t.strides()[0];
    s.h_stride = t.strides()[1];
  } else {
    s.b_stride = t.strides()[0];
    s.h_stride = heads ? t.strides()[1] : 0;
    s.l_stride = t.strides()[heads ? 2 : 1];
  }
  return s;
}

/// A tensor of rows of D numbers, [B,H,L,D], [B,L,D] or packed [T,H,D].
template <class T>
kernels::Strided<T> strided(TensorOf<T>& t, const ScoreRule& rule) {
  return rows_of<T>(t, rule, t.defined() && t.rank() == 4);
}

/// A tensor of one number per row, [B,H,Lq] or packed [Tq,H].
template <class T>
kernels::Strided<T> row_strided(TensorOf<T>& t, const ScoreRule& rule) {
  return rows_of<T>(t, rule, true);
}

}  // namespace qkv
