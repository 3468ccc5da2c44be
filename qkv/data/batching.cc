// Batches of sequences without padding: grouped by length, filled by token count, shuffled by (seed, epoch).
#include "qkv/data/batching.h"

#include <algorithm>
#include <numeric>

#include "qkv/base/error.h"
#include "qkv/base/rng.h"

namespace qkv {
namespace {

using Batches = std::vector<std::vector<int64_t>>;

template <class T>
void shuffle(std::vector<T>& items, Rng& rng) {
  for (size_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1], items[static_cast<size_t>(rng.below(static_cast<int64_t>(i)))]);
  }
}

Batches cut(std::span<const int64_t> order, std::span<const int64_t> costs, const BatchPlan& plan) {
  if (plan.tokens < 1) throw ConfigError("a batch must hold at least 1 token, not " + std::to_string(plan.tokens));
  Batches batches;
  int64_t tokens = 0;
  for (const int64_t i : order) {
    const int64_t cost = costs[static_cast<size_t>(i)];
    const bool full = batches.empty() || tokens + cost > plan.tokens ||
                      (plan.max_examples > 0 && static_cast<int64_t>(batches.back().size()) >= plan.max_examples);
    if (full) {
      batches.emplace_back();
      tokens = 0;
    }
    batches.back().push_back(i);
    tokens += cost;
  }
  return batches;
}

/// Equal lengths stay in order.
std::vector<int64_t> longest_first(std::span<const int64_t> costs) {
  std::vector<int64_t> order(costs.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return costs[static_cast<size_t>(a)] > costs[static_cast<size_t>(b)]; });
  return order;
}

}  // namespace

void RaggedIds::push_back(std::span<const int64_t> sequence) {
  ids.insert(ids.end(), sequence.begin(), sequence.end());
  offsets.push_back(static_cast<int64_t>(ids.size()));
}

RaggedIds gather(const RaggedIds& all, std::span<const int64_t> indices) {
  RaggedIds out;
  out.offsets.reserve(indices.size() + 1);
  for (const int64_t i : indices) out.push_back(all[i]);
  return out;
}

template <class Index>
std::vector<Index> shuffled_indices(int64_t n, uint64_t seed, uint64_t stream) {
  std::vector<Index> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), Index{0});
  Rng rng = Rng(seed).fork(stream);
  shuffle(order, rng);
  return order;
}
template std::vector<int64_t> shuffled_indices(int64_t n, uint64_t seed, uint64_t stream);
template std::vector<uint32_t> shuffled_indices(int64_t n, uint64_t seed, uint64_t stream);

Batches plan_batches(std::span<const int64_t> costs, const BatchPlan& plan, uint64_t seed, int64_t epoch) {
  const auto n = static_cast<int64_t>(costs.size());
  const auto stream = static_cast<uint64_t>(epoch) * 2;
  std::vector<int64_t> order = shuffled_indices(n, seed, stream);
  const int64_t pool = plan.pool > 0 ? plan.pool : std::max<int64_t>(n, 1);
  for (int64_t begin = 0; begin < n; begin += pool) {
    std::stable_sort(order.begin() + begin, order.begin() + std::min(begin + pool, n), [&](int64_t a, int64_t b) {
      return costs[static_cast<size_t>(a)] < costs[static_cast<size_t>(b)];
    });
  }
  Batches batches = cut(order, costs, plan);
  Rng rng = Rng(seed).fork(stream + 1);
  shuffle(batches, rng);
  return batches;
}

Batches plan_batches_in_order(std::span<const int64_t> costs, const BatchPlan& plan) {
  return cut(longest_first(costs), costs, plan);
}

std::vector<int64_t> balanced_part(std::span<const int64_t> costs, int64_t part, int64_t parts) {
  std::vector<int64_t> mine, tokens(static_cast<size_t>(parts), 0);
  for (const int64_t i : longest_first(costs)) {
    const auto least = std::min_element(tokens.begin(), tokens.end());
    *least += std::max<int64_t>(costs[static_cast<size_t>(i)], 1);
    if (least - tokens.begin() == part) mine.push_back(i);
  }
  std::sort(mine.begin(), mine.end());
  return mine;
}

}  // namespace qkv
