// Recurrent encoder-decoder with any attention mechanism.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "qkv/models/decoding.h"
#include "qkv/models/tokens.h"
#include "qkv/nn/attention.h"
#include "qkv/nn/recurrent.h"
#include "qkv/ops/recurrent_decoder.h"

namespace qkv {

/// Where the decoder attends.
enum class Placement : uint8_t {
  after,   // with the new state; logits from tanh(W_c [c ; s]): all steps attend at once
  before,  // with the state before the step; [x ; c] enters the cell, logits from [s ; c ; x]
};
template <>
struct Names<Placement> {
  static constexpr const char* what = "placement of attention";
  static constexpr NameRow<Placement> rows[] = {{Placement::before, "before"}, {Placement::after, "after"}};
};

/// Sizes and choices of a Seq2Seq.
struct Seq2SeqConfig {
  int64_t source_vocabulary = 0, target_vocabulary = 0;
  int64_t embedding = 64, hidden = 128, layers = 1;
  CellKind cell = CellKind::lstm;
  bool bidirectional = false;  // the encoder; the decoder's first state is then tanh(W [forward ; backward])
  Mechanism attention = "dot";
  Placement placement = Placement::after;
  AttentionConfig attention_config;  // query and memory widths are filled in here
  double dropout = 0;                // of embeddings, between layers, and of what the logits are read from
};

/// Encoder-decoder. Source and target sequences are packed; nothing is computed for padding.
class Seq2Seq {
 public:
  /// Throws ConfigError on sizes below 1 and on mechanisms that do not fit.
  Seq2Seq(const Seq2SeqConfig& config, Rng& rng);
  void visit(Visitor& see);
  const Seq2SeqConfig& config() const { return config_; }

  /// What the encoder leaves to the decoder.
  struct Memory {
    Tensor states;  // [Ts, M]
    Ragged batch;
    AttentionPlan plan;
    std::vector<RecurrentState> initial;  // of the decoder, one per layer
  };
  /// Reads the source, once for any number of decodings.
  Memory encode(const TokenBatch& source, Context& ctx) const;

  /// Logits of every target position, [Tt, V]: `inputs` are the target sequences shifted right (begin token first).
  /// Its weights are traced as site "cross". Throws ShapeError when the batches differ in size or an id is unknown.
  Tensor forward(const TokenBatch& source, const TokenBatch& inputs, Context& ctx) const;
  /// The same from an encoded source; `states` receives the decoder's last states when given.
  Tensor decode(const Memory& memory, const TokenBatch& inputs, Context& ctx,
                std::vector<RecurrentState>* states = nullptr) const;

  /// The inputs a decoder sees that is fed its own best guess instead of the target with probability 1 - ratio at
  /// every position after the first: with them, forward() trains as if it had been fed step by step.
  TokenBatch mixed_inputs(const TokenBatch& source, const TokenBatch& inputs, double ratio, Rng& rng) const;

  /// One row per source sentence, ready for search(). The model must outlive it.
  std::unique_ptr<StepDecoder> start(const TokenBatch& source) const;

 private:
  std::vector<RecurrentState> bridge(const RecurrentOutput& encoded) const;
  /// What the lowest layer reads of the tokens: rows of the table, unless dropout changes each of them.
  RecurrentInput read(const Embedding& table, const std::vector<int64_t>& ids, Context& ctx) const;
  Tensor readout(const Tensor& s, const Tensor& context, const Tensor& x, Context& ctx) const;

  Seq2SeqConfig config_;
  Embedding source_embedding_, target_embedding_;
  Recurrent encoder_;
  std::vector<Linear> bridge_h_, bridge_c_;
  std::unique_ptr<Attention> attention_;
  std::vector<RecurrentWeights> decoder_;
  Linear combine_, output_;
  Dropout dropout_;
};

}  // namespace qkv
