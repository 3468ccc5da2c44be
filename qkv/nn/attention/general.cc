// Bilinear attention: the weight is applied to the memory once, not to every query.
#include "qkv/nn/attention/mechanisms.h"

namespace qkv {

GeneralAttention::GeneralAttention(const AttentionConfig& config, Rng& rng)
    : config_(config), key_(config.memory, config.query, rng, config.bias) {}

AttentionPlan GeneralAttention::plan(const Tensor& memory, const Ragged& batch, Context& ctx) const {
  AttentionPlan plan;
  plan.keys = split_heads(key_.forward(memory), 1);
  plan.values = split_heads(memory, 1);
  plan.memory = batch;
  plan.rule = rule_of(config_, ctx);
  if (!plan.rule.scale) plan.rule.scale = 1.0;
  return plan;
}

}  // namespace qkv
