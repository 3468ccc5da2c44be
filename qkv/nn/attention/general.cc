// Bilinear attention: the weight is applied to the memory once, not to every query.
#include "qkv/nn/attention/mechanism.h"

namespace qkv {
namespace {

/// Scores sᵀ (W h + b), context Σ α_j h_j; unscaled unless config.scale is given.
class GeneralAttention final : public Attention {
 public:
  GeneralAttention(const AttentionConfig& config, Rng& rng)
      : config_(config), key_(config.memory, config.query, rng, config.bias) {}
  void visit(Visitor& see) override { see("key", key_); }
  int64_t width() const override { return config_.memory; }
  AttentionPlan plan(const Tensor& memory, const Ragged& batch, Context& ctx) const override {
    AttentionPlan plan;
    plan.keys = split_heads(key_.forward(memory), 1);
    plan.values = split_heads(memory, 1);
    plan.memory = batch;
    plan.rule = rule_of(config_, ctx);
    if (!plan.rule.scale) plan.rule.scale = 1.0;
    return plan;
  }

 private:
  AttentionConfig config_;
  Linear key_;
};

}  // namespace

std::unique_ptr<Attention> make_general(const AttentionConfig& config, Rng& rng) {
  return std::make_unique<GeneralAttention>(config, rng);
}

}  // namespace qkv
