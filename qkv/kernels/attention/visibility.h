// Which keys a query sees: the visibility rules of ScoreArgs, shared by the reference and the fast kernels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "qkv/kernels/attention/attention.h"

namespace qkv::kernels {

/// One sequence of the batch: its own lengths, where its rows start on the l axis, and the position of query 0.
struct Sequence {
  int64_t b = 0, Lq = 0, Lk = 0, q_begin = 0, k_begin = 0, offset = 0;
};

template <class T>
Sequence sequence_of(const AttentionInputs<T>& in, int64_t b) {
  Sequence s{b, in.dims.Lq, in.dims.Lk, 0, 0, in.rule.batch_offsets ? in.rule.batch_offsets[b] : in.rule.offset};
  if (in.q_offsets) {
    s.q_begin = in.q_offsets[b];
    s.Lq = in.q_offsets[b + 1] - s.q_begin;
  }
  if (in.k_offsets) {
    s.k_begin = in.k_offsets[b];
    s.Lk = in.k_offsets[b + 1] - s.k_begin;
  }
  return s;
}

/// Keys lo ≤ j < hi; empty when hi ≤ lo is normalised to lo == hi.
struct KeyRange {
  int64_t lo = 0, hi = 0;
};

/// The interval of keys that lengths, causal rule, window and array widths leave query i; the boolean mask and
/// bias entries of -inf may hide more inside it (key_hidden).
template <class T>
KeyRange key_range(const ScoreArgs<T>& rule, const Sequence& s, int64_t i) {
  constexpr int64_t kFar = int64_t{1} << 40;  // beyond any length, and far from overflow
  const int64_t p = i + s.offset;
  int64_t lo = 0, hi = s.Lk;
  if (rule.key_lens) hi = std::min(hi, rule.key_lens[s.b * rule.lens_b_stride + i * rule.lens_q_stride]);
  if (rule.causal) hi = std::min(hi, p + 1);
  if (rule.window_right >= 0) hi = std::min(hi, p + std::min(rule.window_right, kFar) + 1);
  if (rule.window_left >= 0) lo = std::max(lo, p - std::min(rule.window_left, kFar));
  if (rule.mask.data) hi = std::min(hi, rule.mask.cols);
  if (rule.bias.data) hi = std::min(hi, rule.bias.cols);
  return {lo, std::max(lo, hi)};
}

/// True when the boolean mask or a bias of -inf (or NaN) hides key j of the range from query i.
template <class T>
bool key_hidden(const ScoreArgs<T>& rule, const Sequence& s, int64_t h, int64_t i, int64_t j) {
  if (rule.mask.data && rule.mask.row(s.b, h, i)[j * rule.mask.k_stride] == 0) return true;
  return rule.bias.data && !(rule.bias.row(s.b, h, i)[j * rule.bias.k_stride] > -std::numeric_limits<T>::infinity());
}

}  // namespace qkv::kernels
