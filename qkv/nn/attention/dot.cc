// Dot-product attention on the states themselves.
#include "qkv/base/error.h"
#include "qkv/nn/attention/mechanisms.h"

namespace qkv {

DotAttention::DotAttention(const AttentionConfig& config, Rng&) : config_(config) {
  if (config.query != config.memory) {
    throw ConfigError("attention 'dot' needs queries as wide as the memory, not " + std::to_string(config.query) +
                      " and " + std::to_string(config.memory) + "; 'general' or 'scaled-dot' take any widths");
  }
}

AttentionPlan DotAttention::plan(const Tensor& memory, const Ragged& batch, Context& ctx) const {
  AttentionPlan plan;
  plan.keys = split_heads(memory, 1);
  plan.values = plan.keys;
  plan.memory = batch;
  plan.rule = rule_of(config_, ctx);
  if (!plan.rule.scale) plan.rule.scale = 1.0;
  return plan;
}

}  // namespace qkv
