// A custom attention mechanism: weights that fall off with the distance between query and key.
#pragma once

#include <qkv/qkv.h>
#include <cmath>

/// softmax(-|W_q s - W_k h|² / 2√d), and the context Σ α_j W_v h_j.
class GaussianAttention final : public qkv::Attention {
 public:
  GaussianAttention(const qkv::AttentionConfig& config, qkv::Rng& rng)
      : config_(config),
        query_(config.query, config.query, rng),
        key_(config.memory, config.query, rng),
        value_(config.memory, config.query, rng) {}

  void visit(qkv::Visitor& see) override {
    see("query", query_);
    see("key", key_);
    see("value", value_);
  }

  int64_t width() const override { return config_.query; }

  // -|q - k|²/2 is q·k - |k|²/2 - |q|²/2, and the last term shifts all scores of a query alike, which softmax does not
  // notice. So one more column, 1 in q and -|k|²/2 in k, makes an ordinary product of it, and every kernel serves.
  qkv::AttentionPlan plan(const qkv::Tensor& memory, const qkv::Ragged& batch, qkv::Context& ctx) const override {
    const int64_t d = config_.query;
    const qkv::DType dtype = memory.dtype();
    const qkv::Tensor k = key_.forward(memory);  // [T, d]
    qkv::AttentionPlan plan;
    plan.keys = qkv::split_heads(qkv::concat({k, qkv::sum(k * k, -1, true) / -2}, 1), 1);      // [T, 1, d+1]
    plan.values = qkv::split_heads(value_.forward(memory), 1);                                 // [T, 1, d]
    plan.query_weight = qkv::concat({query_.weight(), qkv::Tensor::zeros({1, d}, dtype)}, 0);  // [d+1, d]
    plan.query_bias = qkv::concat({query_.bias(), qkv::Tensor::full({1}, 1, dtype)}, 0);       // [d+1]
    plan.memory = batch;
    plan.rule = qkv::rule_of(config_, ctx);
    plan.rule.scale = 1 / std::sqrt(static_cast<double>(d));
    return plan;
  }

 private:
  qkv::AttentionConfig config_;
  qkv::Linear query_, key_, value_;
};
