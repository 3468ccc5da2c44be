// A pool of worker threads that runs numbered tasks; results must not depend on who runs which.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

namespace qkv {

/// Number of threads parallel_for uses, the caller included. Defaults to the hardware's.
int num_threads();
/// Sets it (at least 1), also while other threads compute: what they have begun ends with the threads it began with.
/// Throws Error when the system cannot start that many threads; the number then stays as it was.
void set_num_threads(int n);

namespace detail {
/// pthread_atfork where there is such a thing.
void at_fork(void (*prepare)(), void (*parent)(), void (*child)());
using TaskFn = void (*)(void* closure, int64_t task);
void run_tasks(int64_t tasks, TaskFn fn, void* closure);
using PhaseFn = void (*)(void* closure, size_t phase, int64_t task);
void run_phases(std::span<const int64_t> tasks, PhaseFn fn, void* closure);
}  // namespace detail

/// Calls fn(i) once for every i in [0, tasks), each on one thread, in no particular order.
/// Cut work into tasks of a fixed size, so that no result depends on the number of threads.
/// Nested calls run inline. The first exception thrown by a task is rethrown here, when no task runs any more. Throws
/// Error, before the first task, when the threads cannot be started. A child of fork() starts threads of its own.
/// Once the caller's budget (qkv/base/budget.h) is spent, the rest is left undone: check_budget() before using what was
/// computed.
template <class Fn>
void parallel_for(int64_t tasks, Fn&& fn) {
  using F = std::remove_reference_t<Fn>;
  detail::run_tasks(
      tasks, [](void* f, int64_t i) { (*static_cast<F*>(f))(i); },
      const_cast<void*>(static_cast<const void*>(std::addressof(fn))));
}

/// Splits [0, n) into blocks of `block` elements and calls fn(begin, end) once for each.
template <class Fn>
void parallel_blocks(int64_t n, int64_t block, Fn&& fn) {
  parallel_for((n + block - 1) / block, [&](int64_t i) {
    const int64_t begin = i * block;
    fn(begin, begin + block < n ? begin + block : n);
  });
}

/// Phases one after another, in a single meeting of the threads: fn(phase, i) once for every i in [0, tasks[phase]), no
/// task of a phase before all of the one before it have ended. For many short phases, where parallel_for would cost as
/// much as its work. Otherwise like parallel_for.
template <class Fn>
void parallel_phases(std::span<const int64_t> tasks, Fn&& fn) {
  using F = std::remove_reference_t<Fn>;
  detail::run_phases(
      tasks, [](void* f, size_t phase, int64_t i) { (*static_cast<F*>(f))(phase, i); },
      const_cast<void*>(static_cast<const void*>(std::addressof(fn))));
}

}  // namespace qkv
