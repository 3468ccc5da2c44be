// One forward pass of attention and the backward pass that follows it, for callers that record it themselves: the op,
// and the autograd of other libraries. Not a public header.
#pragma once

#include "qkv/kernels/attention/attention.h"
#include "qkv/ops/attention.h"

namespace qkv {

/// Where gradients go, each contiguous and of its input's shape; undefined ones are not computed. Those of q, k and v
/// are written, those of bias and additive added to.
struct AttentionDestinations {
  Tensor d_q, d_k, d_v, d_bias, d_additive;
};

/// What a forward pass takes, gives and keeps for backward: its inputs without history, the result, one number per row.
struct AttentionPass {
  /// Throws ShapeError.
  AttentionPass(const Tensor& q, const Tensor& k, const Tensor& v, const ScoreRule& rule);
  /// Sets `out`, and `lse` when it is to be kept. Throws ShapeError, ConfigError.
  void forward(bool keep_lse);
  /// After forward(true), or with its `out` and `lse` set again. d_out has out's shape and dtype.
  void backward(const Tensor& d_out, AttentionDestinations to) const;

  Tensor q, k, v;
  ScoreRule rule;
  kernels::AttentionDims dims;
  Tensor out;  // [B,H,Lq,Dv]
  Tensor lse;  // [B,H,Lq], packed [Tq,H]
};

}  // namespace qkv
