// Workers: threads that answer requests, so that the thread that speaks HTTP never waits for one.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

namespace qkv::serve {

/// A few threads and a line of jobs. What a kernel keeps for its thread is kept that many times, not once for each
/// connection.
class Workers {
 public:
  struct Job {
    std::function<void()> work;
    std::function<void()> give_up;  // instead of work, when its turn does not come
  };

  /// `waiting` jobs may wait, each for at most `patience`.
  Workers(int threads, int waiting, std::chrono::milliseconds patience);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// False when too many wait already.
  bool offer(Job job);
  /// Gives up what has waited too long; call now and then.
  void give_up_late();
  /// Gives up everything that waits, and returns when the rest is done.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<std::pair<Clock::time_point, Job>> line_;  // with the time until which each waits
  int room_, idle_;
  std::chrono::milliseconds patience_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace qkv::serve
