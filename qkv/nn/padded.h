// Attention on padded batches [B, L, C] with valid lengths: the shapes textbooks use.
#pragma once

#include <span>

#include "qkv/nn/layers.h"
#include "qkv/ops/attention.h"

namespace qkv::padded {

/// softmax(q kᵀ/√d) v: queries [B,Lq,d], keys [B,Lk,d], values [B,Lk,v] → [B,Lq,v]. lens holds B valid lengths of
/// keys, or B·Lq for one a query; empty: all keys count.
Tensor dot_product_attention(const Tensor& queries, const Tensor& keys, const Tensor& values,
                             std::span<const int64_t> lens = {});

/// wᵀ tanh(W_q q + W_k k) in place of the dot product; no biases.
class AdditiveAttention {
 public:
  AdditiveAttention(int64_t query, int64_t key, int64_t hidden, Rng& rng);
  Tensor forward(const Tensor& queries, const Tensor& keys, const Tensor& values,
                 std::span<const int64_t> lens = {}) const;
  void visit(Visitor& see);

 private:
  Linear query_, key_;
  Tensor score_;
};

/// x [B, L, H·D] → [B·H, L, D].
Tensor transpose_qkv(const Tensor& x, int64_t heads);
/// Its inverse: [B·H, L, D] → [B, L, H·D].
Tensor transpose_output(const Tensor& x, int64_t heads);

/// Heads side by side, without biases: queries, keys and values [B, L, width] → [B, Lq, width].
class MultiHeadAttention {
 public:
  /// Throws ConfigError unless the heads divide the width.
  MultiHeadAttention(int64_t width, int64_t heads, Rng& rng, double dropout = 0);
  Tensor forward(const Tensor& queries, const Tensor& keys, const Tensor& values, std::span<const int64_t> lens,
                 Context& ctx) const;
  void visit(Visitor& see);

 private:
  int64_t heads_ = 1;
  double dropout_ = 0;
  Linear query_, key_, value_, output_;
};

/// x [B, L, width] + sinusoidal positions, then dropout. Throws ShapeError past `longest` positions.
class PositionalEncoding {
 public:
  PositionalEncoding(int64_t width, int64_t longest, double dropout = 0);
  Tensor forward(const Tensor& x, Context& ctx) const;
  const Tensor& table() const { return table_; }  // [longest, width]

 private:
  Tensor table_;
  Dropout dropout_;
};

}  // namespace qkv::padded
