// Decoder-only Transformer language model.
#pragma once

#include <memory>

#include "qkv/models/decoding.h"
#include "qkv/models/embedded.h"
#include "qkv/nn/transformer.h"

namespace qkv {

/// Sizes and choices of a Gpt.
struct GptConfig {
  int64_t vocabulary = 256, block = 128;  // block: longest sequence of learned positions and the synthesizer
  int64_t width = 256, heads = 8, kv_heads = 0, layers = 4, inner = 0;  // inner 0: 4·width
  Positions positions = Positions::learned;
  Mechanism attention = "multi-head";
  bool tied = false;  // the scores are products with the table of embeddings
  double dropout = 0;
};

/// Tokens + positions → pre-norm causal layers with GELU → layer norm → logits (no bias; tied or of their own weight).
class Gpt {
 public:
  /// Throws ConfigError on sizes and mechanisms that do not fit.
  Gpt(const GptConfig& config, Rng& rng);
  void visit(Visitor& see);
  const GptConfig& config() const { return config_; }

  /// Logits of every token's successor, [T, V]. Traced as site "self".
  Tensor forward(const TokenBatch& tokens, Context& ctx) const { return logits(hidden(tokens, ctx)); }
  /// What the logits are read from, [T, C]: gather the rows that count, then call logits().
  Tensor hidden(const TokenBatch& tokens, Context& ctx) const;
  /// [N, C] → [N, V].
  Tensor logits(const Tensor& hidden) const;

  /// One row per prompt, all but its last token read; search() continues with SearchOptions::first = the last tokens.
  /// The model must outlive it. Throws ConfigError on an empty prompt.
  std::unique_ptr<StepDecoder> start(std::span<const std::vector<int64_t>> prompts) const;

 private:
  GptConfig config_;
  EmbeddedTokens embed_;
  TransformerStack stack_;
  Linear head_;
};

}  // namespace qkv
