// Where a token stands: sinusoidal and learnt positions, ALiBi biases. Rotary positions are the op rotary().
#pragma once

#include "qkv/nn/layers.h"
#include "qkv/ops/ragged.h"

namespace qkv {

/// P [n, d]:  P[i, 2j] = sin(i / 10000^{2j/d}),  P[i, 2j+1] = cos(the same). Throws ConfigError unless d ≥ 1, n ≥ 0.
Tensor sinusoidal_positions(int64_t n, int64_t d);

/// One learnt row a position, starting as N(0, 0.02²). Throws ShapeError past the longest position.
class LearnedPositions {
 public:
  LearnedPositions() = default;
  LearnedPositions(int64_t longest, int64_t width, Rng& rng, double stddev = 0.02);

  /// Rows of the positions given → [positions.size(), C].
  Tensor forward(std::span<const int64_t> positions) const;
  void visit(Visitor& see) { see("weight", table_); }
  int64_t longest() const { return table_.defined() ? table_.dim(0) : 0; }

 private:
  Tensor table_;
};

/// The slopes of H heads: 2^{-8h/H} for h = 1 … H (Press et al.; for H a power of two).
std::vector<double> alibi_slopes(int64_t heads);
/// Biases -slope_h·|i + offset - j| → [H, Lq, Lk], to be added to the scores.
Tensor alibi_bias(int64_t heads, int64_t Lq, int64_t Lk, int64_t offset = 0);

}  // namespace qkv
