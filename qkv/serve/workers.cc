// Threads that take jobs in turn.
#include "qkv/serve/workers.h"

#include <signal.h>

namespace qkv::serve {

Workers::Workers(int threads, int waiting, std::chrono::milliseconds patience)
    : room_(waiting), idle_(threads), patience_(patience) {
  // Signals are for the program that made the server.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  try {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { serve(); });
  } catch (...) {
    stop();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Workers::~Workers() { stop(); }

bool Workers::offer(Job job) {
  std::lock_guard lock(mutex_);
  if (stopping_ || static_cast<int>(line_.size()) >= room_ + idle_) return false;
  line_.emplace_back(Clock::now() + patience_, std::move(job));
  changed_.notify_one();
  return true;
}

void Workers::give_up_late() {
  std::list<std::pair<Clock::time_point, Job>> late;
  {
    std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    while (!line_.empty() && line_.front().first <= now) late.splice(late.end(), line_, line_.begin());
  }
  for (auto& [until, job] : late) job.give_up();
}

void Workers::stop() {
  std::list<std::pair<Clock::time_point, Job>> left;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    left.swap(line_);
  }
  changed_.notify_all();
  for (auto& [until, job] : left) job.give_up();
  for (std::thread& t : threads_) t.join();
  threads_.clear();
}

void Workers::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !line_.empty(); });
    if (line_.empty()) return;
    const Job job = std::move(line_.front().second);
    line_.pop_front();
    --idle_;
    lock.unlock();
    job.work();
    lock.lock();
    ++idle_;
  }
}

}  // namespace qkv::serve
