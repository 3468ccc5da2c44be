// What the mechanisms share: their rule, and splitting into heads.
#include "qkv/nn/attention/mechanism.h"

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

Tensor self_forward(const Attention& mechanism, const Tensor& x, const AttentionCall& call, Context& ctx) {
  SelfParts parts = mechanism.project(x, call.queries.positions(), ctx);
  parts.rule.causal = call.causal;
  if (call.bias.defined()) parts.rule.bias = call.bias;
  parts.rule.q_offsets = parts.rule.k_offsets = call.queries.offsets();
  trace_attention(parts.q, {parts.k, parts.v}, parts.rule, call, ctx);
  const Tensor a = attention(parts.q, parts.k, parts.v, parts.rule);  // [T, H, Dv]
  const Tensor flat = reshape(a, {a.dim(0), a.dim(1) * a.dim(2)});
  return parts.output_weight.defined() ? linear(flat, parts.output_weight, parts.output_bias) : flat;
}

Tensor split_heads(const Tensor& x, int64_t heads) { return reshape(x, {x.dim(0), heads, x.dim(1) / heads}); }

}  // namespace qkv
