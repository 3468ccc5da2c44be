// The encoder-decoder Transformer and its token-by-token decoding.
#include "qkv/models/transformer.h"

#include <algorithm>
#include <cmath>

#include "qkv/base/error.h"
#include "qkv/core/autograd.h"
#include "qkv/models/stack_steps.h"

namespace qkv {
namespace {

StackConfig stack_of(const TransformerConfig& c, bool decoder) {
  StackConfig s;
  s.width = c.width;
  s.heads = c.heads;
  s.kv_heads = c.kv_heads;
  s.layers = decoder ? c.decoder_layers : c.encoder_layers;
  s.inner = c.inner;
  s.act = c.act;
  s.pre_norm = c.pre_norm;
  s.causal = s.cross = decoder;
  s.dropout = s.inner_dropout = c.dropout;
  s.self_attention = c.self_attention;
  s.cross_attention = c.cross_attention;
  s.positions = c.positions;
  s.block = c.longest;
  s.normaliser = c.normaliser;
  return s;
}

EmbeddedConfig embedded_of(const TransformerConfig& c, int64_t vocabulary) {
  EmbeddedConfig e;
  e.vocabulary = vocabulary;
  e.width = c.width;
  e.positions = c.positions;
  e.longest = c.longest;
  e.endless = true;
  // A table that is also the output weight must be small; times √C it is then of the positions' size.
  e.scaled = c.tying != Tying::none;
  e.stddev = e.scaled ? 1.0 / std::sqrt(static_cast<double>(std::max<int64_t>(1, c.width))) : 1.0;
  e.dropout = c.dropout;
  return e;
}

}  // namespace

Transformer::Transformer(const TransformerConfig& config, Rng& rng)
    : config_(config), source_embed_(embedded_of(config, config.source_vocabulary), rng) {
  if (config.tying == Tying::all && config.source_vocabulary != config.target_vocabulary) {
    throw ConfigError("[transformer] one table for all needs one vocabulary, not " +
                      std::to_string(config.source_vocabulary) + " and " + std::to_string(config.target_vocabulary));
  }
  if (config.tying != Tying::all) target_embed_ = EmbeddedTokens(embedded_of(config, config.target_vocabulary), rng);
  encoder_ = TransformerStack(stack_of(config, false), rng);
  decoder_ = TransformerStack(stack_of(config, true), rng);
  if (config.tying == Tying::none) {
    output_ = Linear(config.width, config.target_vocabulary, rng);
  } else {
    output_bias_ = parameter(Tensor::zeros({config.target_vocabulary}));
  }
}

void Transformer::visit(Visitor& see) {
  see("source", source_embed_);
  if (config_.tying != Tying::all) see("target", target_embed_);
  see("encoder", encoder_);
  see("decoder", decoder_);
  if (config_.tying == Tying::none) see("output", output_);
  see("output_bias", output_bias_);
}

Tensor Transformer::logits(const Tensor& hidden) const {
  if (config_.tying == Tying::none) return output_.forward(hidden);
  return linear(hidden, target_embed().table(), output_bias_);
}

Transformer::Memory Transformer::encode(const TokenBatch& source, Context& ctx) const {
  const Tensor x = source_embed_.forward(source.ids, source.batch.positions(), ctx);  // [Ts, C]
  const Tensor memory = encoder_.forward(x, source.batch, "encoder", ctx);
  return {source.batch, decoder_.plan_memory(memory, source.batch, ctx)};
}

Tensor Transformer::forward(const TokenBatch& source, const TokenBatch& inputs, Context& ctx) const {
  if (inputs.batch.sequences() != source.batch.sequences()) {
    throw ShapeError("[transformer] " + std::to_string(inputs.batch.sequences()) + " targets for " +
                     std::to_string(source.batch.sequences()) + " sources");
  }
  const Memory memory = encode(source, ctx);
  const Tensor x = target_embed().forward(inputs.ids, inputs.batch.positions(), ctx);  // [Tt, C]
  return logits(decoder_.forward(x, inputs.batch, "decoder", ctx, memory.plans));
}

std::unique_ptr<StepDecoder> Transformer::start(const TokenBatch& source) const {
  NoGrad guard;
  Context ctx;
  const bool tied = config_.tying != Tying::none;
  const StepParts parts{target_embed(), decoder_, tied ? target_embed().table() : output_.weight(),
                        tied ? output_bias_ : output_.bias()};
  return std::make_unique<StackSteps>(parts, source.batch.sequences(), encode(source, ctx).plans);
}

}  // namespace qkv
