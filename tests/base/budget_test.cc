// Work within a budget: it is stopped when its time is up, on every thread that helps.
#include "qkv/base/budget.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "qkv/base/parallel.h"

namespace qkv {
namespace {

using std::chrono::milliseconds;

TEST(BudgetTest, NoBudgetIsNoLimit) {
  EXPECT_EQ(current_budget(), nullptr);
  EXPECT_NO_THROW(check_budget(int64_t{1} << 60));
}

TEST(BudgetTest, TimeMemoryAndCancelling) {
  Budget budget(std::chrono::hours(1), 100);
  {
    const BudgetScope scope(&budget);
    EXPECT_NO_THROW(check_budget(100));
    EXPECT_THROW(check_budget(101), BudgetError);
    const Budget past(milliseconds(-1), 100);
    {
      const BudgetScope inner(&past);
      EXPECT_THROW(check_budget(), BudgetError);
    }
    EXPECT_NO_THROW(check_budget());
    budget.cancel();
    EXPECT_THROW(check_budget(), BudgetError);
  }
  EXPECT_EQ(current_budget(), nullptr);
}

TEST(BudgetTest, AParallelLoopStopsAndItsHelpersKnowTheBudget) {
  constexpr int64_t kTasks = 100000;
  std::atomic<int64_t> done{0};
  std::atomic<bool> without{false};
  Budget budget(std::chrono::hours(1), 0);
  const auto loop = [&] {
    parallel_for(kTasks, [&](int64_t) {
      if (current_budget() != &budget) without = true;
      if (++done == 10) budget.cancel();
    });
  };
  {
    const BudgetScope scope(&budget);
    loop();
    EXPECT_THROW(check_budget(), BudgetError);
  }
  EXPECT_GE(done, 10);
  EXPECT_LT(done, kTasks);
  EXPECT_FALSE(without);
  done = 10;
  parallel_for(kTasks, [&](int64_t) { ++done; });
  EXPECT_EQ(done, kTasks + 10);  // the next loop has no budget
}

}  // namespace
}  // namespace qkv
