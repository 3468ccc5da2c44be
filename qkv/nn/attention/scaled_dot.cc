// Single-head scaled dot-product attention with projections.
#include "qkv/nn/attention/mechanism.h"

namespace qkv {
namespace {

/// q = W_q s, k = W_k h (both `key` wide), v = W_v h; scores q·k/√key.
class ScaledDotAttention final : public Attention {
 public:
  ScaledDotAttention(const AttentionConfig& config, Rng& rng)
      : config_(config),
        query_(config.query, config.key > 0 ? config.key : config.query, rng, config.bias),
        key_(config.memory, config.key > 0 ? config.key : config.query, rng, config.bias),
        value_(config.memory, config.value > 0 ? config.value : config.memory, rng, config.bias) {}
  void visit(Visitor& see) override {
    see("query", query_);
    see("key", key_);
    see("value", value_);
  }
  int64_t width() const override { return value_.weight().dim(0); }
  AttentionPlan plan(const Tensor& memory, const Ragged& batch, Context& ctx) const override {
    AttentionPlan plan;
    plan.keys = split_heads(key_.forward(memory), 1);
    plan.values = split_heads(value_.forward(memory), 1);
    plan.memory = batch;
    plan.query_weight = query_.weight();
    plan.query_bias = query_.bias();
    plan.rule = rule_of(config_, ctx);
    return plan;
  }

 private:
  AttentionConfig config_;
  Linear query_, key_, value_;
};

}  // namespace

std::unique_ptr<Attention> make_scaled_dot(const AttentionConfig& config, Rng& rng) {
  return std::make_unique<ScaledDotAttention>(config, rng);
}

}  // namespace qkv
