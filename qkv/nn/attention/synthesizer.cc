// Synthesizer attention: scores are a learnt function of the token, with one output a position.
#include "qkv/base/error.h"
#include "qkv/nn/attention/mechanisms.h"

namespace qkv {

SynthesizerAttention::SynthesizerAttention(const AttentionConfig& config, Rng& rng) : config_(config) {
  const int64_t C = config.query, H = config.heads;
  check_size("attention heads", H);
  check_size("synthesizer block length", config.block);
  if (C < 1 || C % H != 0) {
    throw ConfigError("attention: width " + std::to_string(C) + " does not divide into " + std::to_string(H) +
                      " heads");
  }
  hidden_ = Linear(C, C, rng);
  score_ = parameter(Tensor::randn({config.block, C}, rng, 0.02));
  score_bias_ = parameter(Tensor::zeros({config.block, H}));
  value_ = Linear(C, C, rng, config.bias);
  output_ = Linear(C, C, rng, config.bias);
}

void SynthesizerAttention::visit(Visitor& see) {
  see("hidden", hidden_);
  see("score", score_);
  see("score_bias", score_bias_);
  see("value", value_);
  see("output", output_);
}

AttentionPlan SynthesizerAttention::plan(const Tensor& memory, const Ragged& batch, Context& ctx) const {
  if (batch.longest() > config_.block) {
    throw ShapeError("[synthesizer] a sequence of " + std::to_string(batch.longest()) + " tokens for a block of " +
                     std::to_string(config_.block));
  }
  const int64_t H = config_.heads;
  AttentionPlan plan;
  // B's column of position j plays the key of key j: scores are then an ordinary product, and nothing is stored.
  plan.keys = split_heads(gather_rows(score_, batch.positions()), H);  // [T, H, D]
  plan.values = split_heads(value_.forward(memory), H);                // [T, H, D]
  plan.memory = batch;
  plan.heads = H;
  plan.output_weight = output_.weight();
  plan.output_bias = output_.bias();
  plan.rule = rule_of(config_, ctx);
  plan.rule.scale = 1.0;
  const Tensor bias = transpose(slice(score_bias_, 0, 0, batch.longest()), 0, 1);  // [H, Lk]
  plan.rule.bias = reshape(contiguous(bias), {H, 1, batch.longest()});
  return plan;
}

Tensor SynthesizerAttention::forward(const Tensor& query, const Tensor& memory, const AttentionCall& call,
                                     Context& ctx) const {
  const AttentionPlan made = plan(memory, call.memory, ctx);
  ScoreRule rule = made.rule;
  rule.causal = call.causal;
  const Tensor q = split_heads(hidden_.forward(query, Act::relu), config_.heads);
  trace_attention(q, made.keys, rule, call, ctx);
  return attend(q, call.queries, made, rule);
}

}  // namespace qkv
