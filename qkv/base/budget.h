// Budget: how long a piece of work may take and how much memory it may need, asked about at coarse grain while it runs.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "qkv/base/error.h"

namespace qkv {

/// Work that was stopped because it took longer, or needed more memory, than it was given.
class BudgetError : public Error {
 public:
  using Error::Error;
};

/// What one request may cost. Every tensor that is made and every block of a parallel loop asks; a loop whose budget is
/// spent leaves the rest undone, and the next op or tensor throws BudgetError, so that nothing unfinished is used.
class Budget {
 public:
  /// What deadlines are read from.
  using Clock = std::chrono::steady_clock;

  /// Time from now on; `bytes`: the most that all tensors of the process may hold while work under this budget makes
  /// one.
  Budget(Clock::duration time, int64_t bytes) : time_(time), until_(Clock::now() + time), bytes_(bytes) {}

  /// Ends the work from another thread.
  void cancel() noexcept { cancelled_.store(true, std::memory_order_relaxed); }
  bool spent() const noexcept { return cancelled() || Clock::now() >= until_; }
  bool cancelled() const noexcept { return cancelled_.load(std::memory_order_relaxed); }
  Clock::duration time() const { return time_; }
  Clock::time_point until() const { return until_; }
  int64_t bytes() const { return bytes_; }

 private:
  Clock::duration time_;
  Clock::time_point until_;
  int64_t bytes_;
  std::atomic<bool> cancelled_{false};
};

/// The budget of what this thread does; null where there is none.
const Budget* current_budget() noexcept;

/// Work of this thread inside the scope's life has this budget (null: none).
class BudgetScope {
 public:
  explicit BudgetScope(const Budget* budget) noexcept;
  ~BudgetScope();
  BudgetScope(const BudgetScope&) = delete;
  BudgetScope& operator=(const BudgetScope&) = delete;

 private:
  const Budget* before_;
};

/// Throws BudgetError when this thread's budget is spent.
void check_budget();
/// The same, and when tensors would then hold more than `bytes` in all.
void check_budget(int64_t bytes);

}  // namespace qkv
