// What the mechanisms share: their rule, and splitting into heads.
#include "qkv/nn/attention/mechanisms.h"

namespace qkv {

ScoreRule rule_of(const AttentionConfig& config, Context& ctx) {
  ScoreRule rule;
  rule.scale = config.scale;
  rule.normaliser = config.normaliser;
  if (ctx.training() && config.dropout > 0) {
    rule.dropout = config.dropout;
    rule.dropout_seed = ctx.next_seed();
  }
  return rule;
}

Tensor split_heads(const Tensor& x, int64_t heads) { return reshape(x, {x.dim(0), heads, x.dim(1) / heads}); }

}  // namespace qkv
