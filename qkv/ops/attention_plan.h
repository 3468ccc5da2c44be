// An attention mechanism with its memory made ready: what one query, or a thousand, attends with.
#pragma once

#include "qkv/ops/attention.h"
#include "qkv/ops/ragged.h"

namespace qkv {

/// q = W_q s + b_q (or s itself), cut into `heads`;  a = normaliser(score(q, keys)) values;  c = W_o a + b_o (or a).
/// Keys and values depend on the memory alone, so they are computed once however many queries follow.
struct AttentionPlan {
  Tensor keys;    // [Tk, Hkv, D]
  Tensor values;  // [Tk, Hkv, Dv]
  Ragged memory;  // which rows belong to which sequence
  int64_t heads = 1;
  Tensor query_weight, query_bias;    // [heads·D, C], [heads·D]; undefined: the query itself
  Tensor output_weight, output_bias;  // [W, heads·Dv], [W]; undefined: the attended values themselves
  bool uniform = false;               // weights do not depend on the query (q = 0): the mean of the values
  ScoreRule rule;                     // scale, normaliser, additive score, softcap, dropout; no masks or offsets

  bool defined() const { return keys.defined(); }
  /// Width of the context.
  int64_t width() const { return output_weight.defined() ? output_weight.dim(0) : heads * values.dim(2); }
};

/// q of every query s [Tq, C] → [Tq, heads, D]. Throws ShapeError when the widths do not fit.
Tensor project_queries(const Tensor& s, const AttentionPlan& plan);

/// Context of every projected query: q [Tq, heads, D], packed as `queries` says, sequence b of it attending to sequence
/// b of the memory → [Tq, width]. `rule` is the plan's, possibly with causality, window or bias added by the caller.
Tensor context_of(const Tensor& q, const Ragged& queries, const AttentionPlan& plan, ScoreRule rule);

}  // namespace qkv
