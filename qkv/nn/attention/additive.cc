// Additive attention: a one-hidden-layer score.
#include <cmath>

#include "qkv/nn/attention/mechanism.h"

namespace qkv {
namespace {

/// Scores wᵀ tanh(W_q s + W_k h), context Σ α_j h_j.
class AdditiveAttention final : public Attention {
 public:
  AdditiveAttention(const AttentionConfig& config, Rng& rng)
      : config_(config),
        query_(config.query, config.key > 0 ? config.key : config.query, rng, false),
        key_(config.memory, config.key > 0 ? config.key : config.query, rng, false) {
    const int64_t width = query_.weight().dim(0);
    const double bound = 1.0 / std::sqrt(static_cast<double>(width));
    score_ = parameter(Tensor::uniform({width}, rng, -bound, bound));
  }
  void visit(Visitor& see) override {
    see("query", query_);
    see("key", key_);
    see("score", score_);
  }
  int64_t width() const override { return config_.memory; }
  AttentionPlan plan(const Tensor& memory, const Ragged& batch, Context& ctx) const override {
    AttentionPlan plan;
    plan.keys = split_heads(key_.forward(memory), 1);
    plan.values = split_heads(memory, 1);
    plan.memory = batch;
    plan.query_weight = query_.weight();
    plan.rule = rule_of(config_, ctx);
    plan.rule.additive = score_;
    return plan;
  }

 private:
  AttentionConfig config_;
  Linear query_, key_;
  Tensor score_;  // w [key]
};

}  // namespace

std::unique_ptr<Attention> make_additive(const AttentionConfig& config, Rng& rng) {
  return std::make_unique<AdditiveAttention>(config, rng);
}

}  // namespace qkv
