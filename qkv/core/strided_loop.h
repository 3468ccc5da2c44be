// Walks strided tensors row by row, over a shape simplified so that rows are as long as the strides allow.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "qkv/base/parallel.h"
#include "qkv/base/shape.h"

namespace qkv {

/// A loop over `shape` that reads or writes N tensors of that (broadcast) shape with their own strides.
template <size_t N>
class StridedLoop {
 public:
  StridedLoop(const Shape& shape, const std::array<Shape, N>& strides) : numel_(shape.numel()) {
    // Neighbouring axes along which every tensor steps evenly become one; axes of size 1 vanish.
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (shape[axis] == 1) continue;
      bool joins = sizes_.rank() > 0;
      for (size_t t = 0; joins && t < N; ++t) joins = steps_[t][-1] == strides[t][axis] * shape[axis];
      if (joins) {
        sizes_[-1] *= shape[axis];
      } else {
        sizes_.push_back(shape[axis]);
      }
      for (size_t t = 0; t < N; ++t) {
        if (joins) {
          steps_[t][-1] = strides[t][axis];
        } else {
          steps_[t].push_back(strides[t][axis]);
        }
      }
    }
    if (sizes_.rank() == 0) {
      sizes_.push_back(1);
      for (Shape& s : steps_) s.push_back(1);
    }
  }

  /// fn(offsets, n, steps): one row of n elements; tensor t's start at offsets[t] and step by steps[t]. Rows are
  /// spread over threads in blocks of a fixed size: fn may not carry anything from row to row.
  template <class Fn>
  void run(Fn&& fn) const {
    if (numel_ == 0) return;
    const int64_t n = sizes_[-1], rows = numel_ / n;
    std::array<int64_t, N> steps;
    for (size_t t = 0; t < N; ++t) steps[t] = steps_[t][-1];
    if (rows == 1) {
      parallel_blocks(n, kBlock, [&](int64_t begin, int64_t end) {
        std::array<int64_t, N> at;
        for (size_t t = 0; t < N; ++t) at[t] = begin * steps[t];
        fn(at, end - begin, steps);
      });
      return;
    }
    const int64_t rows_a_task = n >= kBlock ? 1 : kBlock / n;
    parallel_blocks(rows, rows_a_task, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) fn(offsets_of(row), n, steps);
    });
  }

 private:
  static constexpr int64_t kBlock = 1 << 14;

  std::array<int64_t, N> offsets_of(int64_t row) const {
    std::array<int64_t, N> at{};
    for (int axis = sizes_.rank() - 2; axis >= 0; --axis) {
      const int64_t here = row % sizes_[axis];
      row /= sizes_[axis];
      for (size_t t = 0; t < N; ++t) at[t] += here * steps_[t][axis];
    }
    return at;
  }

  int64_t numel_;
  Shape sizes_;
  std::array<Shape, N> steps_;
};

}  // namespace qkv
