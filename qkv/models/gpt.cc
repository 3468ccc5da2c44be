// The language model and its token-by-token reading.
#include "qkv/models/gpt.h"

#include "qkv/base/error.h"
#include "qkv/core/autograd.h"

namespace qkv {
namespace {

StackConfig stack_of(const GptConfig& c) {
  StackConfig s;
  s.width = c.width;
  s.heads = c.heads;
  s.kv_heads = c.kv_heads;
  s.layers = c.layers;
  s.inner = c.inner > 0 ? c.inner : 4 * c.width;
  s.causal = true;
  s.dropout = c.dropout;
  s.self_attention = c.attention;
  s.positions = c.positions;
  s.block = c.block;
  return s;
}

}  // namespace

class GptSteps final : public StepDecoder {
 public:
  GptSteps(const Gpt& model, std::span<const std::vector<int64_t>> prompts)
      : model_(model), cache_(model.stack_.start(static_cast<int64_t>(prompts.size()))) {
    std::vector<std::vector<int64_t>> read;
    int64_t total = 0;
    for (const auto& p : prompts) {
      if (p.empty()) throw ConfigError("[gpt] an empty prompt has nothing to continue");
      read.emplace_back(p.begin(), p.end() - 1);
      total += static_cast<int64_t>(p.size()) - 1;
    }
    if (total > 0) {
      NoGrad guard;
      extend(TokenBatch(read));
    }
  }

  int64_t rows() const override { return static_cast<int64_t>(cache_.lengths.size()); }
  Tensor step(std::span<const int64_t> tokens) override {
    NoGrad guard;
    return model_.logits(extend({{tokens.begin(), tokens.end()}, Ragged::equal(rows(), 1)}));
  }
  void select(std::span<const int64_t> rows) override { cache_.select(rows); }

 private:
  Tensor extend(const TokenBatch& tokens) {
    std::vector<int64_t> positions = tokens.batch.positions();
    for (int64_t r = 0; r < rows(); ++r) {
      for (int64_t i = tokens.batch.begin(r); i < tokens.batch.begin(r + 1); ++i) {
        positions[static_cast<size_t>(i)] += cache_.lengths[static_cast<size_t>(r)];
      }
    }
    return model_.stack_.extend(model_.embed_.forward(tokens.ids, positions, ctx_), tokens.batch, cache_, ctx_);
  }

  const Gpt& model_;
  Context ctx_;
  StackCache cache_;
};

Gpt::Gpt(const GptConfig& config, Rng& rng)
    : config_(config),
      embed_({.vocabulary = config.vocabulary,
              .width = config.width,
              .positions = config.positions,
              .longest = config.block,
              .dropout = config.dropout},
             rng),
      stack_(stack_of(config), rng),
      head_(config.tied ? Linear() : Linear(config.width, config.vocabulary, rng, false)) {}

void Gpt::visit(Visitor& see) {
  see("embed", embed_);
  see("stack", stack_);
  if (!config_.tied) see("head", head_);
}

Tensor Gpt::logits(const Tensor& hidden) const {
  return config_.tied ? linear(hidden, embed_.table()) : head_.forward(hidden);
}

Tensor Gpt::hidden(const TokenBatch& tokens, Context& ctx) const {
  return stack_.forward(embed_.forward(tokens.ids, tokens.batch.positions(), ctx), tokens.batch, "self", ctx);
}

std::unique_ptr<StepDecoder> Gpt::start(std::span<const std::vector<int64_t>> prompts) const {
  return std::make_unique<GptSteps>(*this, prompts);
}

}  // namespace qkv
