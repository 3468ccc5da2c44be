// Tokens with their positions: what every Transformer model starts with.
#pragma once

#include <string>

#include "qkv/models/tokens.h"
#include "qkv/nn/layers.h"
#include "qkv/nn/positions.h"

namespace qkv {

/// Sizes and choices of EmbeddedTokens.
struct EmbeddedConfig {
  int64_t vocabulary = 0, width = 0;
  Positions positions = Positions::learned;
  int64_t longest = 0;   // learned positions only
  bool endless = false;  // tokens further on than that share the last position
  bool scaled = false;   // embeddings times √width, as in the first Transformer
  double stddev = 0.02;
  double dropout = 0;
};

/// dropout(table[id]·√width + position), where the positions are added to the embeddings; what else they do is the
/// attention's business.
class EmbeddedTokens {
 public:
  EmbeddedTokens() = default;
  EmbeddedTokens(const EmbeddedConfig& config, Rng& rng);
  void visit(Visitor& see);

  /// ids [N] at the given positions → [N, width]. Throws ShapeError on an unknown id or a position past the longest
  /// (unless it is endless).
  Tensor forward(std::span<const int64_t> ids, std::span<const int64_t> positions, Context& ctx) const;
  /// The same numbers without a graph, for decoding in f32. `more` keeps fixed positions beyond the usual ones from
  /// call to call.
  void write(std::span<const int64_t> ids, std::span<const int64_t> positions, Tensor& more, float* out) const;
  const Tensor& table() const { return embedding_.table(); }

 private:
  EmbeddedConfig config_;
  Embedding embedding_;
  LearnedPositions learned_;
  Tensor fixed_;  // positions of the usual lengths; longer ones are computed when they come
  Dropout dropout_;
};

}  // namespace qkv
