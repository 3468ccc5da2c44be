// Synthesizer attention: scores are a learnt function of the token, with one output a position.
#include <algorithm>

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

AttentionPlan SynthesizerAttention::plan(const Tensor&, const Ragged&, Context&) const {
  throw ConfigError("attention 'synthesizer' makes no sense as cross-attention");
}

SelfParts SynthesizerAttention::project(const Tensor& x, std::span<const int64_t> positions, Context& ctx) const {
  const int64_t H = config_.heads;
  int64_t longest = 0;
  for (int64_t p : positions) longest = std::max(longest, p + 1);
  if (longest > config_.block) {
    throw ShapeError("[synthesizer] a sequence of " + std::to_string(longest) + " tokens for a block of " +
                     std::to_string(config_.block));
  }
  SelfParts parts;
  parts.q = split_heads(hidden_.forward(x, Act::relu), H);  // [T, H, D]
  // B's column of position j plays the key of key j: scores are then an ordinary product, and nothing is stored.
  parts.k = split_heads(gather_rows(score_, positions), H);  // [T, H, D]
  parts.v = split_heads(value_.forward(x), H);               // [T, H, D]
  parts.rule = rule_of(config_, ctx);
  parts.rule.scale = 1.0;
  const Tensor bias = transpose(slice(score_bias_, 0, 0, longest), 0, 1);  // [H, Lk]
  parts.rule.bias = reshape(contiguous(bias), {H, 1, longest});
  parts.output_weight = output_.weight();
  parts.output_bias = output_.bias();
  return parts;
}

Tensor SynthesizerAttention::forward(const Tensor& query, const Tensor&, const AttentionCall& call,
                                     Context& ctx) const {
  return self_forward(*this, query, call, ctx);
}

}  // namespace qkv
