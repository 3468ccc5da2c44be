// Positions of tokens: the one table of positional encodings, and what they are made of.
#pragma once

#include "qkv/base/names.h"
#include "qkv/nn/layers.h"
#include "qkv/ops/heads.h"

namespace qkv {

/// P [n, d]:  P[i, 2j] = sin(i / 10000^{2j/d}),  P[i, 2j+1] = cos(the same). Throws ConfigError unless d ≥ 1, n ≥ 0.
Tensor sinusoidal_positions(int64_t n, int64_t d);

/// One learnt row per position, starting as N(0, 0.02²). Throws ShapeError past the longest position.
class LearnedPositions {
 public:
  LearnedPositions() = default;
  LearnedPositions(int64_t longest, int64_t width, Rng& rng, double stddev = 0.02);

  /// Rows of the positions given → [positions.size(), C].
  Tensor forward(std::span<const int64_t> positions) const;
  void visit(Visitor& see) { see("weight", table_); }
  int64_t longest() const { return table_.defined() ? table_.dim(0) : 0; }
  const Tensor& table() const { return table_; }

 private:
  Tensor table_;
};

/// The slopes of H heads: 2^{-8h/H} for h = 1 … H (Press et al.; for H a power of two).
std::vector<double> alibi_slopes(int64_t heads);
/// Biases -slope_h·|i + offset - j| → [H, Lq, Lk], to be added to the scores.
Tensor alibi_bias(int64_t heads, int64_t Lq, int64_t Lk, int64_t offset = 0);

/// How a model knows a token's position.
enum class Positions : uint8_t { none, sinusoidal, learned, rotary, alibi };

/// What an encoding does, where. The models read nothing else: a new encoding is a value above, a row below and the
/// functions that the row names.
struct PositionsRow {
  Positions value = Positions::none;
  const char* name = nullptr;
  bool learned = false;  // learnt rows are added to the embeddings
  /// Fixed rows [n, width] that are added to the embeddings.
  Tensor (*fixed)(int64_t n, int64_t width) = nullptr;
  /// Queries and keys of self-attention, the first heads·D columns of x [T, W], with their rows' positions in them: the
  /// pair (x_j, x_{j+D/2}) of a head is turned by an angle of j and the position.
  Tensor (*turned)(const Tensor& x, int64_t heads, int64_t D, std::span<const int64_t> positions) = nullptr;
  /// Biases [heads, Lq, Lk] of self-attention's scores; query i is at position i + offset. They depend on how far key j
  /// is behind it alone.
  Tensor (*bias)(int64_t heads, int64_t Lq, int64_t Lk, int64_t offset) = nullptr;

  constexpr bool added() const { return learned || fixed != nullptr; }
  constexpr bool in_attention() const { return turned != nullptr || bias != nullptr; }
};

template <>
struct Names<Positions> {
  static constexpr const char* what = "positional encoding";
  static constexpr PositionsRow rows[] = {
      {.value = Positions::none, .name = "none"},
      {.value = Positions::sinusoidal, .name = "sinusoidal", .fixed = sinusoidal_positions},
      {.value = Positions::learned, .name = "learned", .learned = true},
      {.value = Positions::rotary, .name = "rotary", .turned = rotary_columns},
      {.value = Positions::alibi, .name = "alibi", .bias = alibi_bias},
  };
};

}  // namespace qkv
