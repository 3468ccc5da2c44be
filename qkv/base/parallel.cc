// The thread pool behind parallel_for: workers spin briefly for the next job, then sleep.
#include "qkv/base/parallel.h"

#if defined(__linux__)
#include <sched.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#define QKV_HAS_FORK 1
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "qkv/base/budget.h"
#include "qkv/base/error.h"
#include "qkv/base/processors.h"

namespace qkv {
namespace {

thread_local bool inside_task = false;

// Where a thread runs. A worker that was woken on the core of a busy thread would wait there for its share of time, up
// to several ticks, while another core may be idle.
#if defined(__linux__)
int current_cpu() { return sched_getcpu(); }
void leave_cpu(int cpu) {
  cpu_set_t all, others;
  if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof all, &all) != 0) return;
  others = all;
  CPU_CLR(cpu, &others);
  if (CPU_COUNT(&others) == 0) return;
  if (sched_setaffinity(0, sizeof others, &others) == 0) sched_setaffinity(0, sizeof all, &all);
}
#else
int current_cpu() { return -1; }
void leave_cpu(int) {}
#endif

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// One job at a time. A worker counts itself in `active_` and then takes tasks if the job is still open; the caller
// closes the job when no task is left and waits for the workers inside. A worker that wakes up late finds it closed,
// so nobody ever waits for a sleeping one.
//
// Each thread has a range of tasks of its own and helps the others when it is through: neighbouring tasks run on one
// core, and so does the same part of one job and the next, where its data may still be in that core's cache.
class Pool {
 public:
  explicit Pool(int threads) : ranges_(static_cast<size_t>(threads)) {
    try {
      workers_.reserve(ranges_.size());
      for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(static_cast<size_t>(i)); });
    } catch (const std::system_error& e) {
      const size_t got = workers_.size() + 1;
      stop();
      throw Error("[threads] " + std::to_string(threads) + " threads wanted, the system gives " + std::to_string(got) +
                  " (" + e.code().message() + "); use fewer");
    } catch (...) {
      stop();
      throw;
    }
  }
  ~Pool() { stop(); }

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  void run(int64_t tasks, detail::TaskFn fn, void* closure) {
    std::lock_guard one_job(job_mutex_);
    fn_ = fn;
    closure_ = closure;
    error_ = nullptr;
    budget_ = current_budget();
    caller_cpu_ = current_cpu();
    const auto count = static_cast<int64_t>(ranges_.size());
    for (int64_t i = 0; i < count; ++i) {
      Range& range = ranges_[static_cast<size_t>(i)];
      range.next.store(tasks / count * i + std::min(i, tasks % count), std::memory_order_relaxed);
      range.end = tasks / count * (i + 1) + std::min(i + 1, tasks % count);
    }
    open_.store(true);
    {
      std::lock_guard lock(mutex_);
      epoch_.fetch_add(1, std::memory_order_release);
    }
    if (sleepers_.load() > 0) wake_.notify_all();
    drain(0);
    open_.store(false);
    while (active_.load() != 0) pause_briefly();
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  void stop() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
      epoch_.fetch_add(1);
    }
    wake_.notify_all();
    for (auto& w : workers_) w.join();
  }

  // The tasks not yet taken, own range first.
  void drain(size_t own) {
    const BudgetScope scope(budget_);
    inside_task = true;
    for (size_t n = 0; n < ranges_.size(); ++n) {
      Range& range = ranges_[(own + n) % ranges_.size()];
      for (int64_t i = range.next.fetch_add(1); i < range.end; i = range.next.fetch_add(1)) {
        if (budget_ != nullptr && budget_->spent()) continue;
        try {
          fn_(closure_, i);
        } catch (...) {
          std::lock_guard lock(mutex_);
          if (!error_) error_ = std::current_exception();
        }
      }
    }
    inside_task = false;
  }

  // Waits awake for an epoch after `seen`; false when none came in time. It goes by the clock: a pause takes 140 cycles
  // on one processor and 40 on another.
  bool spin_until_new(uint64_t seen) {
    constexpr auto kAwake = std::chrono::microseconds(50);  // covers the gap between two ops of a training step
    constexpr int kPauses = 16;
    for (const auto start = std::chrono::steady_clock::now(); std::chrono::steady_clock::now() - start < kAwake;) {
      for (int i = 0; i < kPauses; ++i) {
        if (epoch_.load(std::memory_order_acquire) != seen) return true;
        pause_briefly();
      }
    }
    return false;
  }

  void work(size_t own) {
    uint64_t seen = 0;
    for (;;) {
      if (!spin_until_new(seen)) {
        std::unique_lock lock(mutex_);
        sleepers_.fetch_add(1);
        wake_.wait(lock, [&] { return epoch_.load() != seen; });
        sleepers_.fetch_sub(1);
      }
      seen = epoch_.load(std::memory_order_acquire);
      if (stop_) return;
      active_.fetch_add(1);
      if (open_.load()) {
        if (caller_cpu_ >= 0 && current_cpu() == caller_cpu_) leave_cpu(caller_cpu_);
        drain(own);
      }
      active_.fetch_sub(1);
    }
  }

  struct alignas(64) Range {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  std::vector<Range> ranges_;  // one for each thread, the caller's first
  std::vector<std::thread> workers_;
  std::mutex job_mutex_, mutex_;
  std::condition_variable wake_;
  std::atomic<uint64_t> epoch_{0};
  std::atomic<int> active_{0}, sleepers_{0};
  std::atomic<bool> open_{false}, stop_{false};
  detail::TaskFn fn_ = nullptr;
  void* closure_ = nullptr;
  const Budget* budget_ = nullptr;  // of the caller: shared by all who help
  int caller_cpu_ = -1;             // when the job began
  std::exception_ptr error_;
};

// The phases of one call. Each thread has a share of each phase; who has waited for a share that nobody has begun, or
// whose thread is not there, takes it. So nobody waits for a sleeping thread, and in the usual case a thread only
// writes to lines of its own: a phase ends within the time that a line takes from core to core.
class Phases {
 public:
  Phases(std::span<const int64_t> tasks, detail::PhaseFn fn, void* closure, size_t threads)
      : tasks_(tasks), fn_(fn), closure_(closure), threads_(threads), lane_(tasks.size() / 64 * 64 + 128) {
    struct Memory {
      std::unique_ptr<Mark[]> marks;
      size_t size = 0;
    };
    thread_local Memory memory;  // of the caller, kept: decoding comes here for every token
    const size_t size = 2 * lane_ * threads;
    if (memory.size < size) memory = {std::make_unique<Mark[]>(size), size};
    marks_ = memory.marks.get();
    for (size_t i = 0; i < size; ++i) marks_[i].store(0, std::memory_order_relaxed);
  }

  // What thread `own` does.
  void walk(size_t own) {
    taken(own, tasks_.size()).store(1, std::memory_order_relaxed);
    for (size_t p = 0; p < tasks_.size(); ++p) {
      take(p, own);
      for (size_t n = 0; n < threads_; ++n) wait_for(p, (own + n) % threads_);  // its own, too: another may have it
    }
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  using Mark = std::atomic<unsigned char>;
  Mark& taken(size_t thread, size_t phase) { return marks_[2 * thread * lane_ + phase]; }
  Mark& ended(size_t thread, size_t phase) { return marks_[(2 * thread + 1) * lane_ + phase]; }

  int64_t begin(size_t phase, size_t share) const {
    return tasks_[phase] * static_cast<int64_t>(share) / static_cast<int64_t>(threads_);
  }

  void take(size_t phase, size_t share) {
    Mark& mark = taken(share, phase);
    if (mark.load(std::memory_order_relaxed) != 0 || mark.exchange(1, std::memory_order_relaxed) != 0) return;
    try {
      for (int64_t i = begin(phase, share); i < begin(phase, share + 1); ++i) fn_(closure_, phase, i);
    } catch (...) {
      std::lock_guard lock(error_mutex_);
      if (!error_) error_ = std::current_exception();
    }
    ended(share, phase).store(1, std::memory_order_release);
  }

  void wait_for(size_t phase, size_t share) {
    constexpr int kPatience = 64, kLong = 4096;  // pauses: a microsecond or two, some tens of them
    if (begin(phase, share) == begin(phase, share + 1)) return;
    for (int i = 0; ended(share, phase).load(std::memory_order_acquire) == 0; ++i) {
      const bool there = taken(share, tasks_.size()).load(std::memory_order_relaxed) != 0;
      if (!there || i >= kPatience) take(phase, share);
      if (i < kLong) {
        pause_briefly();
      } else {
        std::this_thread::yield();  // whoever has it may need this core
      }
    }
  }

  std::span<const int64_t> tasks_;
  detail::PhaseFn fn_;
  void* closure_;
  size_t threads_, lane_;
  Mark* marks_ = nullptr;  // for each thread: which shares are taken (the last: it is there), which have ended
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

// The one process-wide object of qkv: threads are a property of the machine, and no result depends on them. A job holds
// the pool it runs on, so that another may take its place in the meantime.
std::mutex pool_mutex;
std::shared_ptr<Pool> pool_instance;
std::atomic<int> pool_size{0};  // of pool_instance, 0 before there is one: asked for by every op, so without a lock

// Asked once: the system's answer takes microseconds, and small ops that start no pool would ask every time.
int default_threads() {
  static const int n = usable_processors();
  return n;
}

// Threads do not survive fork: the child forgets the pool without touching it, and makes one of the same size.
void forget_pool() {
  alignas(std::shared_ptr<Pool>) static unsigned char forgotten[sizeof(std::shared_ptr<Pool>)];
  new (forgotten) std::shared_ptr<Pool>(std::move(pool_instance));
  pool_mutex.unlock();
}

std::shared_ptr<Pool> made(int threads) {
  [[maybe_unused]] static const bool once =
      (detail::at_fork([] { pool_mutex.lock(); }, [] { pool_mutex.unlock(); }, forget_pool), true);
  return std::make_shared<Pool>(threads);
}

std::shared_ptr<Pool> pool() {
  std::lock_guard lock(pool_mutex);
  if (!pool_instance) {
    pool_instance = made(num_threads());
    pool_size = pool_instance->size();
  }
  return pool_instance;
}

}  // namespace

void detail::at_fork([[maybe_unused]] void (*prepare)(), [[maybe_unused]] void (*parent)(),
                     [[maybe_unused]] void (*child)()) {
#if defined(QKV_HAS_FORK)
  if (pthread_atfork(prepare, parent, child) != 0) throw std::bad_alloc();
#endif
}

int num_threads() {
  const int size = pool_size.load(std::memory_order_relaxed);
  return size > 0 ? size : default_threads();
}

void set_num_threads(int n) {
  n = std::max(1, n);
  std::shared_ptr<Pool> before;  // let go of after the lock: a job may still run on it
  std::lock_guard lock(pool_mutex);
  if (pool_instance && pool_instance->size() == n) return;
  before = std::exchange(pool_instance, made(n));
  pool_size = n;
}

void detail::run_tasks(int64_t tasks, TaskFn fn, void* closure) {
  if (tasks <= 0) return;
  if (tasks == 1 || inside_task || num_threads() == 1) {
    const Budget* const budget = current_budget();
    for (int64_t i = 0; i < tasks; ++i) {
      if (tasks > 1 && budget != nullptr && budget->spent()) return;
      fn(closure, i);
    }
    return;
  }
  pool()->run(tasks, fn, closure);
}

void detail::run_phases(std::span<const int64_t> tasks, PhaseFn fn, void* closure) {
  const auto threads = static_cast<size_t>(num_threads());
  if (inside_task || threads == 1) {
    for (size_t p = 0; p < tasks.size(); ++p) {
      for (int64_t i = 0; i < tasks[p]; ++i) fn(closure, p, i);
    }
    return;
  }
  Phases phases(tasks, fn, closure, threads);
  parallel_for(static_cast<int64_t>(threads), [&](int64_t t) { phases.walk(static_cast<size_t>(t)); });
  phases.rethrow();
}

}  // namespace qkv
