// The attention mechanisms, one class and one file each; attention.h lists them by name.
#pragma once

#include "qkv/nn/attention.h"

namespace qkv {

/// No context: width 0, nothing to learn.
class NoAttention final : public Attention {
 public:
  NoAttention(const AttentionConfig&, Rng&) {}
  void visit(Visitor&) override {}
  int64_t width() const override { return 0; }
  AttentionPlan plan(const Tensor&, const Ragged&, Context&) const override { return {}; }
};

/// c = (1/n) Σ_j h_j, whatever the query.
class MeanAttention final : public Attention {
 public:
  MeanAttention(const AttentionConfig& config, Rng&) : width_(config.memory) {}
  void visit(Visitor&) override {}
  int64_t width() const override { return width_; }
  AttentionPlan plan(const Tensor& memory, const Ragged& batch, Context& ctx) const override;

 private:
  int64_t width_ = 0;
};

/// Scores s·h, context Σ α_j h_j: nothing to learn. Throws ConfigError when the widths differ.
class DotAttention final : public Attention {
 public:
  DotAttention(const AttentionConfig& config, Rng& rng);
  void visit(Visitor&) override {}
  int64_t width() const override { return config_.memory; }
  AttentionPlan plan(const Tensor& memory, const Ragged& batch, Context& ctx) const override;

 private:
  AttentionConfig config_;
};

/// q = W_q s, k = W_k h (both `key` wide), v = W_v h; scores q·k/√key.
class ScaledDotAttention final : public Attention {
 public:
  ScaledDotAttention(const AttentionConfig& config, Rng& rng);
  void visit(Visitor& see) override;
  int64_t width() const override { return value_.weight().dim(0); }
  AttentionPlan plan(const Tensor& memory, const Ragged& batch, Context& ctx) const override;

 private:
  AttentionConfig config_;
  Linear query_, key_, value_;
};

/// Scores sᵀ (W h + b), context Σ α_j h_j; unscaled unless config.scale is given.
class GeneralAttention final : public Attention {
 public:
  GeneralAttention(const AttentionConfig& config, Rng& rng);
  void visit(Visitor& see) override { see("key", key_); }
  int64_t width() const override { return config_.memory; }
  AttentionPlan plan(const Tensor& memory, const Ragged& batch, Context& ctx) const override;

 private:
  AttentionConfig config_;
  Linear key_;
};

/// Scores wᵀ tanh(W_q s + W_k h), context Σ α_j h_j.
class AdditiveAttention final : public Attention {
 public:
  AdditiveAttention(const AttentionConfig& config, Rng& rng);
  void visit(Visitor& see) override;
  int64_t width() const override { return config_.memory; }
  AttentionPlan plan(const Tensor& memory, const Ragged& batch, Context& ctx) const override;

 private:
  AttentionConfig config_;
  Linear query_, key_;
  Tensor score_;  // w [key]
};

/// Heads of q·k/√D side by side: W_o [head_1; …; head_H] + b_o. With kv_heads < heads, groups of query heads share
/// keys and values. In self-attention one product gives q, k and v; rotary positions turn q and k.
class MultiHeadAttention final : public Attention {
 public:
  MultiHeadAttention(const AttentionConfig& config, Rng& rng);
  void visit(Visitor& see) override;
  int64_t width() const override { return output_.weight().dim(0); }
  AttentionPlan plan(const Tensor& memory, const Ragged& batch, Context& ctx) const override;
  Tensor forward(const Tensor& query, const Tensor& memory, const AttentionCall& call, Context& ctx) const override;
  SelfParts project(const Tensor& x, std::span<const int64_t> positions, Context& ctx) const override;

 private:
  AttentionConfig config_;
  int64_t D_ = 0, Dv_ = 0;
  Linear query_;      // [H·D, C]; cross-attention only
  Linear key_value_;  // [Hkv·(D+Dv), M]; cross-attention only
  Linear joint_;      // [H·D + Hkv·(D+Dv), C]; self-attention only: q, k, v
  Linear output_;
};

/// Weights from the token itself: row i is softmax over j ≤ i of relu(x_i A + a)·B_j + b_j, for each head; values as
/// usual. B has one column a position, so sequences are at most config.block long (ShapeError beyond).
class SynthesizerAttention final : public Attention {
 public:
  SynthesizerAttention(const AttentionConfig& config, Rng& rng);
  void visit(Visitor& see) override;
  int64_t width() const override { return output_.weight().dim(0); }
  AttentionPlan plan(const Tensor& memory, const Ragged& batch, Context& ctx) const override;
  Tensor forward(const Tensor& query, const Tensor& memory, const AttentionCall& call, Context& ctx) const override;
  SelfParts project(const Tensor& x, std::span<const int64_t> positions, Context& ctx) const override;

 private:
  AttentionConfig config_;
  Linear hidden_;      // A: [C, C]
  Tensor score_;       // B: [block, H·D]
  Tensor score_bias_;  // b: [block, H]
  Linear value_, output_;
};

/// The part of a rule that a mechanism's configuration decides.
ScoreRule rule_of(const AttentionConfig& config, Context& ctx);
/// Self-attention of whole sequences from a mechanism's own parts.
Tensor self_forward(const Attention& attention, const Tensor& x, const AttentionCall& call, Context& ctx);
/// x [T, heads·width] as [T, heads, width].
Tensor split_heads(const Tensor& x, int64_t heads);

}  // namespace qkv
