// Attention on padded batches [B, L, C] with valid lengths: the classes textbooks use. docs/TEXTBOOK.md shows each.
#pragma once

#include <span>
#include <vector>

#include "qkv/nn/layers.h"
#include "qkv/nn/recurrent.h"
#include "qkv/ops/attention_plan.h"

namespace qkv::padded {

/// Valid lengths of the keys: B of them, or B·Lq for one per query; empty: all keys count.
using Lengths = std::span<const int64_t>;

/// softmax(q kᵀ/√d) v: queries [B,Lq,d], keys [B,Lk,d], values [B,Lk,v] → [B,Lq,v].
class DotProductAttention {
 public:
  /// Throws ConfigError unless 0 ≤ dropout < 1; it acts on the weights, while training.
  explicit DotProductAttention(double dropout = 0) : dropout_(dropout) {}
  Tensor forward(const Tensor& queries, const Tensor& keys, const Tensor& values, Lengths lens, Context& ctx) const;
  /// The weights without dropout, [B, Lq, Lk].
  Tensor weights(const Tensor& queries, const Tensor& keys, Lengths lens = {}) const;

 private:
  Dropout dropout_;
};

/// wᵀ tanh(W_q q + W_k k) in place of the dot product; no biases.
class AdditiveAttention {
 public:
  AdditiveAttention() = default;
  AdditiveAttention(int64_t query, int64_t key, int64_t hidden, Rng& rng, double dropout = 0);
  Tensor forward(const Tensor& queries, const Tensor& keys, const Tensor& values, Lengths lens, Context& ctx) const;
  Tensor weights(const Tensor& queries, const Tensor& keys, Lengths lens = {}) const;  // [B, Lq, Lk]
  void visit(Visitor& see);

 private:
  friend class Seq2SeqAttentionDecoder;
  Linear query_, key_;
  Tensor score_;
  Dropout dropout_;
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
  Tensor forward(const Tensor& queries, const Tensor& keys, const Tensor& values, Lengths lens, Context& ctx) const;
  Tensor weights(const Tensor& queries, const Tensor& keys, Lengths lens = {}) const;  // [B, H, Lq, Lk]
  void visit(Visitor& see);

 private:
  int64_t heads_ = 1;
  Dropout dropout_;
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

/// Sizes of an attention decoder.
struct DecoderSizes {
  int64_t vocabulary = 0, embedding = 0, hidden = 0, layers = 1;
  double dropout = 0;  // between the layers, while training; the attention weights are not dropped
};

/// A GRU that looks at the source before every step: the query is the top layer's state before the step, the context
/// enters the cell beside the token's embedding, and the logits are read from the new state alone.
class Seq2SeqAttentionDecoder {
 public:
  Seq2SeqAttentionDecoder(const DecoderSizes& sizes, Rng& rng);

  /// What decoding starts and continues from.
  struct State {
    Tensor encoder_outputs;     // [B, Ls, hidden]
    Tensor hidden;              // [layers, B, hidden]
    std::vector<int64_t> lens;  // of the source, B; empty: all of it counts
  };
  /// What a pass over the tokens gives.
  struct Decoded {
    Tensor logits;   // [B, T, vocabulary]
    State state;     // after the last step: decoding continues from here
    Tensor weights;  // [B, T, Ls], no gradient
  };
  /// `tokens` holds B·T ids, sequence after sequence. Throws ShapeError.
  Decoded forward(std::span<const int64_t> tokens, const State& state, Context& ctx) const;
  void visit(Visitor& see);

 private:
  AttentionPlan plan(const State& state) const;

  DecoderSizes sizes_;
  Embedding embedding_;
  AdditiveAttention attention_;
  std::vector<RecurrentWeights> cells_;
  Linear output_;
};

}  // namespace qkv::padded
