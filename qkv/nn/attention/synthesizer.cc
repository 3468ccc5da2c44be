// Synthesizer attention: scores are a learnt function of the token, with one output per position.
#include <algorithm>

#include "qkv/base/error.h"
#include "qkv/nn/attention/mechanism.h"

namespace qkv {
namespace {

/// Weights from the token itself: row i is softmax over j ≤ i of relu(x_i A + a)·B_j + b_j, for each head; values as
/// usual. B has one column per position, so sequences are at most config.block long (ShapeError beyond).
class SynthesizerAttention final : public Attention {
 public:
  SynthesizerAttention(const AttentionConfig& config, Rng& rng) : config_(config) {
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
  void visit(Visitor& see) override {
    see("hidden", hidden_);
    see("score", score_);
    see("score_bias", score_bias_);
    see("value", value_);
    see("output", output_);
  }
  int64_t width() const override { return output_.weight().dim(0); }
  AttentionPlan plan(const Tensor&, const Ragged&, Context&) const override {
    throw ConfigError("attention 'synthesizer' cannot be used as cross-attention");
  }
  Tensor forward(const Tensor& query, const Tensor&, const AttentionCall& call, Context& ctx) const override {
    return self_forward(*this, query, call, ctx);
  }
  SelfParts project(const Tensor& x, std::span<const int64_t> positions, Context& ctx) const override {
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
  bool goes_by_place() const override { return true; }

 private:
  AttentionConfig config_;
  Linear hidden_;      // A: [C, C]
  Tensor score_;       // B: [block, H·D]
  Tensor score_bias_;  // b: [block, H]
  Linear value_, output_;
};

}  // namespace

std::unique_ptr<Attention> make_synthesizer(const AttentionConfig& config, Rng& rng) {
  return std::make_unique<SynthesizerAttention>(config, rng);
}

}  // namespace qkv
