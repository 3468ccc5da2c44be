// Encoder-decoder Transformer.
#pragma once

#include <memory>

#include "qkv/models/decoding.h"
#include "qkv/models/embedded.h"
#include "qkv/nn/transformer.h"

namespace qkv {

/// Which tables are one: none; the decoder's embedding is also the output weight; both embeddings and the output.
enum class Tying : uint8_t { none, output, all };
template <>
struct Names<Tying> {
  static constexpr const char* what = "tying of tables";
  static constexpr NameRow<Tying> rows[] = {{Tying::all, "all"}, {Tying::output, "output"}, {Tying::none, "none"}};
};

/// Sizes and choices of a Transformer.
struct TransformerConfig {
  int64_t source_vocabulary = 0, target_vocabulary = 0;
  int64_t width = 256, heads = 8, kv_heads = 0, inner = 1024, encoder_layers = 3, decoder_layers = 3;
  Act act = Act::relu;
  bool pre_norm = true;
  Positions positions = Positions::sinusoidal;
  int64_t longest = 256;  // learned positions only: tokens further on share the last one
  Tying tying = Tying::output;
  Mechanism self_attention = "multi-head", cross_attention = "multi-head";
  Normaliser normaliser = Normaliser::softmax;
  double dropout = 0.1;
};

/// Encoder-decoder of Transformer stacks. Source and target sequences are packed; nothing is computed for padding.
class Transformer {
 public:
  /// Throws ConfigError on sizes, mechanisms and tyings that do not fit.
  Transformer(const TransformerConfig& config, Rng& rng);
  void visit(Visitor& see);
  const TransformerConfig& config() const { return config_; }

  /// What the encoder leaves to the decoder.
  struct Memory {
    Ragged batch;
    MemoryPlans plans;
  };
  /// Reads the source, once for any number of decodings.
  Memory encode(const TokenBatch& source, Context& ctx) const;
  /// Logits of every target position, [Tt, V]: `inputs` are the target sequences shifted right. Traced as sites
  /// "encoder", "decoder" and "cross".
  Tensor forward(const TokenBatch& source, const TokenBatch& inputs, Context& ctx) const;

  /// One row per source sentence, ready for search(). The model must outlive it.
  std::unique_ptr<StepDecoder> start(const TokenBatch& source) const;

 private:
  const EmbeddedTokens& target_embed() const { return config_.tying == Tying::all ? source_embed_ : target_embed_; }
  Tensor logits(const Tensor& hidden) const;

  TransformerConfig config_;
  EmbeddedTokens source_embed_, target_embed_;
  TransformerStack encoder_, decoder_;
  Linear output_;       // untied
  Tensor output_bias_;  // tied
};

}  // namespace qkv
