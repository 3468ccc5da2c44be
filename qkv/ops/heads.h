// Ops that get queries and keys ready: columns split into parts, and rotary positions.
#pragma once

#include <span>
#include <vector>

#include "qkv/core/tensor.h"

namespace qkv {

/// x [T, C] cut into parts of the given widths, views [T, widths[i]] of x. Throws ShapeError unless they add up to C.
std::vector<Tensor> split_columns(const Tensor& x, std::span<const int64_t> widths);

/// Rotary positions: x [T, H, D], D even, row t at position p = positions[t]. With θ_j = p·base^{-2j/D}, j < D/2, the
/// pair (x_j, x_{j+D/2}) is turned by θ_j (the half-split convention):
///   y_j = x_j cos θ_j - x_{j+D/2} sin θ_j;  y_{j+D/2} = x_{j+D/2} cos θ_j + x_j sin θ_j
/// Dot products of turned queries and keys depend on the difference of their positions alone. Throws ShapeError.
Tensor rotary(const Tensor& x, std::span<const int64_t> positions, double base = 10000);

/// The same on a fused projection: x [T, W], whose first heads·D columns are `heads` heads to turn (the queries and
/// keys); the other columns (the values) are copied. The base is 10000. Throws ShapeError.
Tensor rotary_columns(const Tensor& x, int64_t heads, int64_t D, std::span<const int64_t> positions);

}  // namespace qkv
