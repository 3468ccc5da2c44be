// The budget of each thread.
#include "qkv/base/budget.h"

#include <string>

namespace qkv {
namespace {

thread_local const Budget* budget_of_thread = nullptr;

}  // namespace

const Budget* current_budget() noexcept { return budget_of_thread; }

BudgetScope::BudgetScope(const Budget* budget) noexcept : before_(budget_of_thread) { budget_of_thread = budget; }
BudgetScope::~BudgetScope() { budget_of_thread = before_; }

void check_budget() {
  const Budget* const budget = budget_of_thread;
  if (budget == nullptr || !budget->spent()) return;
  if (budget->cancelled()) throw BudgetError("this was stopped because the server ends");
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(budget->time()).count();
  throw BudgetError("this takes longer than " + std::to_string(seconds) +
                    " seconds and was stopped; use a smaller input or smaller settings");
}

void check_budget(int64_t bytes) {
  if (budget_of_thread == nullptr) return;
  check_budget();
  if (bytes > budget_of_thread->bytes()) {
    throw BudgetError("not enough memory: this needs " + std::to_string(bytes >> 20) + " MiB, the limit is " +
                      std::to_string(budget_of_thread->bytes() >> 20) +
                      " MiB; use a smaller input or smaller settings");
  }
}

}  // namespace qkv
