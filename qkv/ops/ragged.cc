// Builds the index of a ragged batch.
#include "qkv/ops/ragged.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "qkv/base/error.h"

namespace qkv {
namespace {

TimeOrder time_order(const std::vector<int64_t>& offsets) {
  const size_t B = offsets.size() - 1;
  const auto length = [&](int64_t b) { return offsets[static_cast<size_t>(b) + 1] - offsets[static_cast<size_t>(b)]; };
  TimeOrder time;
  time.order.resize(B);
  std::iota(time.order.begin(), time.order.end(), int64_t{0});
  std::stable_sort(time.order.begin(), time.order.end(), [&](int64_t a, int64_t b) { return length(a) > length(b); });
  const int64_t steps = B == 0 ? 0 : length(time.order[0]);
  time.begin.assign(1, 0);
  time.forward_rows.reserve(static_cast<size_t>(offsets.back()));
  time.backward_rows.reserve(static_cast<size_t>(offsets.back()));
  for (int64_t t = 0; t < steps; ++t) {
    for (int64_t b : time.order) {
      if (length(b) <= t) break;
      time.forward_rows.push_back(offsets[static_cast<size_t>(b)] + t);
      time.backward_rows.push_back(offsets[static_cast<size_t>(b) + 1] - 1 - t);
    }
    time.begin.push_back(static_cast<int64_t>(time.forward_rows.size()));
  }
  time.same_lengths = B == 0 || length(time.order[0]) == length(time.order[B - 1]);
  return time;
}

}  // namespace

Ragged::Ragged(std::span<const int64_t> lengths) {
  auto index = std::make_shared<Index>();
  index->offsets.assign(1, 0);
  for (int64_t n : lengths) {
    if (n < 0) throw ShapeError("[ragged] negative length " + std::to_string(n));
    index->offsets.push_back(index->offsets.back() + n);
  }
  index->time = time_order(index->offsets);
  index_ = std::move(index);
}

Ragged Ragged::equal(int64_t B, int64_t length) {
  return Ragged(std::vector<int64_t>(static_cast<size_t>(std::max<int64_t>(0, B)), length));
}

std::vector<int64_t> Ragged::positions() const {
  std::vector<int64_t> at;
  at.reserve(static_cast<size_t>(rows()));
  for (int64_t b = 0; b < sequences(); ++b) {
    for (int64_t i = 0; i < length(b); ++i) at.push_back(i);
  }
  return at;
}

}  // namespace qkv
