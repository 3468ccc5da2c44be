// Dot-product attention on the states themselves.
#include "qkv/base/error.h"
#include "qkv/nn/attention/mechanism.h"

namespace qkv {
namespace {

/// Scores s·h, context Σ α_j h_j: nothing to learn. Throws ConfigError when the widths differ.
class DotAttention final : public Attention {
 public:
  DotAttention(const AttentionConfig& config, Rng&) : config_(config) {
    if (config.query != config.memory) {
      throw ConfigError("attention 'dot' needs queries as wide as the memory, not " + std::to_string(config.query) +
                        " and " + std::to_string(config.memory) + "; 'general' or 'scaled-dot' take any widths");
    }
  }
  void visit(Visitor&) override {}
  int64_t width() const override { return config_.memory; }
  AttentionPlan plan(const Tensor& memory, const Ragged& batch, Context& ctx) const override {
    AttentionPlan plan;
    plan.keys = split_heads(memory, 1);
    plan.values = plan.keys;
    plan.memory = batch;
    plan.rule = rule_of(config_, ctx);
    if (!plan.rule.scale) plan.rule.scale = 1.0;
    return plan;
  }

 private:
  AttentionConfig config_;
};

}  // namespace

std::unique_ptr<Attention> make_dot(const AttentionConfig& config, Rng& rng) {
  return std::make_unique<DotAttention>(config, rng);
}

}  // namespace qkv
