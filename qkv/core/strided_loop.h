// Walks a strided tensor row by row.
#pragma once

#include <cstdint>

#include "qkv/base/shape.h"

namespace qkv {

/// Calls fn(dense, offset, n, step) for each innermost row: `dense` is the row's start in row-major order,
/// `offset` its start in the strided memory, n its length and step its stride.
template <class Fn>
void for_each_row(const Shape& shape, const Shape& strides, Fn&& fn) {
  const int rank = shape.rank();
  if (shape.numel() == 0) return;
  if (rank == 0) {
    fn(int64_t{0}, int64_t{0}, int64_t{1}, int64_t{1});
    return;
  }
  const int64_t n = shape[-1], step = strides[-1];
  int64_t index[Shape::kMaxRank] = {};
  int64_t offset = 0;
  const int64_t total = shape.numel();
  for (int64_t dense = 0; dense < total; dense += n) {
    fn(dense, offset, n, step);
    for (int d = rank - 2; d >= 0; --d) {
      offset += strides[d];
      if (++index[d] < shape[d]) break;
      offset -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
}

}  // namespace qkv
