// A layer of attention whose weights a test writes down.
#pragma once

#include <span>
#include <vector>

#include "qkv/nn/context.h"

namespace qkv::testing {

// One layer with the given weights [H, n, n].
inline AttentionTrace layer_of(int layer, int64_t heads, int64_t n, const std::vector<float>& weights) {
  AttentionTrace t;
  t.site = "self";
  t.layer = layer;
  t.B = 1;
  t.H = heads;
  t.Lq = t.Lk = n;
  t.scores = [=](const ScoreWindow& w) {
    const auto from = static_cast<size_t>((w.h * n + w.row_begin) * n),
               count = static_cast<size_t>((w.row_end - w.row_begin) * n);
    return Tensor::from(std::span(weights).subspan(from, count), {w.row_end - w.row_begin, n});
  };
  return t;
}

}  // namespace qkv::testing
