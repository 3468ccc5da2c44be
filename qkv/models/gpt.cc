// The language model and its token-by-token reading.
#include "qkv/models/gpt.h"

#include "qkv/base/error.h"
#include "qkv/models/stack_steps.h"

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
  std::vector<std::vector<int64_t>> read;
  int64_t total = 0;
  for (const auto& p : prompts) {
    if (p.empty()) throw ConfigError("[gpt] an empty prompt has nothing to continue");
    read.emplace_back(p.begin(), p.end() - 1);
    total += static_cast<int64_t>(p.size()) - 1;
  }
  auto steps = std::make_unique<StackSteps>(
      StepParts{embed_, stack_, config_.tied ? embed_.table() : head_.weight(), {}}, static_cast<int64_t>(read.size()));
  if (total > 0) steps->read(TokenBatch(read));
  return steps;
}

}  // namespace qkv
