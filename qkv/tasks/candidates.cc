// The likeliest tokens of each row.
#include "qkv/tasks/candidates.h"

#include <algorithm>
#include <numeric>

#include "qkv/ops/ops.h"

namespace qkv {

std::vector<std::vector<TracedCandidate>> likeliest(const Tensor& logits, int64_t most,
                                                    const std::function<std::string(int64_t)>& name) {
  const NoGrad no_grad;
  const int64_t V = logits.dim(1);
  const std::vector<double> p = softmax(logits).to_doubles();  // [T, V]
  std::vector<std::vector<TracedCandidate>> rows;
  std::vector<int64_t> order(static_cast<size_t>(V));
  for (int64_t t = 0; t < logits.dim(0); ++t) {
    const double* row = p.data() + t * V;
    std::iota(order.begin(), order.end(), int64_t{0});
    const auto end = order.begin() + std::min(most, V);
    std::partial_sort(order.begin(), end, order.end(),
                      [row](int64_t a, int64_t b) { return row[a] != row[b] ? row[a] > row[b] : a < b; });
    rows.emplace_back();
    for (auto id = order.begin(); id != end; ++id) rows.back().push_back({name(*id), row[*id], *id});
  }
  return rows;
}

}  // namespace qkv
