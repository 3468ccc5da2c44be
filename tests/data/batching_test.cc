// Every example is in exactly one batch of an epoch, batches keep their limits, and only (seed, epoch) decides.
#include "qkv/data/batching.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "qkv/base/rng.h"

namespace qkv {
namespace {

using Batches = std::vector<std::vector<int64_t>>;

std::vector<int64_t> some_costs(int64_t n) {
  Rng rng(5);
  std::vector<int64_t> costs(static_cast<size_t>(n));
  for (int64_t& cost : costs) cost = 1 + rng.below(60);
  return costs;
}

int64_t cost_of(const std::vector<int64_t>& batch, const std::vector<int64_t>& costs) {
  int64_t sum = 0;
  for (const int64_t i : batch) sum += costs[static_cast<size_t>(i)];
  return sum;
}

void expect_partition(const Batches& batches, size_t n) {
  std::vector<int> seen(n, 0);
  for (const auto& batch : batches) {
    EXPECT_FALSE(batch.empty());
    for (const int64_t i : batch) ++seen[static_cast<size_t>(i)];
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<int64_t>(n));
}

TEST(Batching, EveryExampleOnceWithinTheLimits) {
  const auto costs = some_costs(1000);
  for (const BatchPlan& plan : {BatchPlan{.tokens = 256}, BatchPlan{.tokens = 256, .max_examples = 7},
                                BatchPlan{.tokens = 256, .max_examples = 0, .pool = 100}, BatchPlan{.tokens = 1}}) {
    const Batches batches = plan_batches(costs, plan, 3, 2);
    expect_partition(batches, costs.size());
    for (const auto& batch : batches) {
      EXPECT_TRUE(cost_of(batch, costs) <= plan.tokens || batch.size() == 1);
      if (plan.max_examples > 0) {
        EXPECT_LE(batch.size(), 7u);
      }
    }
  }
}

TEST(Batching, FullBatchesOfLikeLengths) {
  const auto costs = some_costs(2000);
  const Batches batches = plan_batches(costs, {.tokens = 512}, 1, 0);
  const int64_t total = std::accumulate(costs.begin(), costs.end(), int64_t{0});
  EXPECT_LE(static_cast<int64_t>(batches.size()), total / 512 * 11 / 10 + 1);  // at most a tenth of the room is lost
  for (const auto& batch : batches) {
    const auto [low, high] = std::minmax_element(batch.begin(), batch.end(), [&](int64_t a, int64_t b) {
      return costs[static_cast<size_t>(a)] < costs[static_cast<size_t>(b)];
    });
    EXPECT_LE(costs[static_cast<size_t>(*high)] - costs[static_cast<size_t>(*low)], 8);
  }
}

TEST(Batching, OrderDependsOnSeedAndEpochAlone) {
  const auto costs = some_costs(300);
  const Batches once = plan_batches(costs, {.tokens = 100}, 7, 4);
  EXPECT_EQ(once, plan_batches(costs, {.tokens = 100}, 7, 4));
  EXPECT_NE(once, plan_batches(costs, {.tokens = 100}, 7, 5));
  EXPECT_NE(once, plan_batches(costs, {.tokens = 100}, 8, 4));
  // Lengths do not come in order: neighbours of an epoch are not sorted.
  std::vector<int64_t> firsts;
  for (const auto& batch : once) firsts.push_back(costs[static_cast<size_t>(batch[0])]);
  EXPECT_FALSE(std::is_sorted(firsts.begin(), firsts.end()));
}

TEST(Batching, InOrderIsLongestFirst) {
  const std::vector<int64_t> costs = {2, 9, 4, 4};
  EXPECT_EQ(plan_batches_in_order(costs, {.tokens = 8}), (Batches{{1}, {2, 3}, {0}}));
  EXPECT_TRUE(plan_batches_in_order({}, {}).empty());
  EXPECT_TRUE(plan_batches({}, {}, 1, 1).empty());
  EXPECT_EQ(testing::message_of<ConfigError>([&] { plan_batches(costs, {.tokens = 0}, 1, 1); }),
            "a batch must hold at least 1 token, not 0");
}

TEST(Batching, RaggedKeepsSequences) {
  RaggedIds all;
  for (const std::vector<int64_t>& s : {std::vector<int64_t>{1, 2, 3}, {}, {4}}) all.push_back(s);
  EXPECT_EQ(all.size(), 3);
  EXPECT_EQ(all.tokens(), 4);
  const RaggedIds some = gather(all, std::vector<int64_t>{2, 0});
  EXPECT_EQ(some.ids, (std::vector<int64_t>{4, 1, 2, 3}));
  EXPECT_EQ(some.offsets, (std::vector<int64_t>{0, 1, 4}));
  EXPECT_EQ(some[1][2], 3);
}

TEST(Batching, PartsAreBalancedByTokensAndHaveEveryExampleOnce) {
  const std::vector<int64_t> costs{9, 1, 7, 3, 5, 2, 8, 4, 6, 10, 1};
  std::vector<int64_t> seen;
  for (int64_t p = 0; p < 4; ++p) {
    const std::vector<int64_t> part = balanced_part(costs, p, 4);
    EXPECT_TRUE(std::is_sorted(part.begin(), part.end()));
    int64_t tokens = 0;
    for (const int64_t i : part) tokens += costs[static_cast<size_t>(i)];
    EXPECT_NEAR(static_cast<double>(tokens), 56 / 4.0, 1);
    seen.insert(seen.end(), part.begin(), part.end());
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, balanced_part(costs, 0, 1));
  EXPECT_TRUE(balanced_part(std::vector<int64_t>{4, 4}, 2, 4).empty());
}

TEST(Batching, ShuffleIsAPermutationAndFair) {
  std::vector<int64_t> first_place(5, 0);
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    std::vector<int64_t> order = shuffled_indices(5, seed, 0);
    ++first_place[static_cast<size_t>(order[0])];
    std::sort(order.begin(), order.end());
    ASSERT_EQ(order, (std::vector<int64_t>{0, 1, 2, 3, 4}));
  }
  for (const int64_t count : first_place) EXPECT_NEAR(static_cast<double>(count), 1000, 150);  // 5 sigma
}

}  // namespace
}  // namespace qkv
