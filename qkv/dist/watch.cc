// A thread that asks the system a few times a second.
#include "qkv/dist/watch.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

namespace qkv {
namespace {

constexpr auto kPause = std::chrono::milliseconds(100);

bool gone(const Peer& peer) { return ::kill(static_cast<pid_t>(peer.pid), 0) != 0 && errno == ESRCH; }

}  // namespace

Watch::Watch(const std::vector<Peer>& peers, int rank, Lost lost) : parent_(getppid()), lost_(std::move(lost)) {
  for (const Peer& p : peers) {
    if (p.rank != rank && p.host == peers[static_cast<size_t>(rank)].host) others_.push_back(p);
  }
  // Signals are for the thread that trains.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { look(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Watch::~Watch() {
  stop();
  thread_.join();
}

void Watch::stop() {
  const std::lock_guard lock(mutex_);  // what `lost` has begun ends first
  stopped_ = true;
}

void Watch::look() {
  while (!stopped_) {
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) return;
      if (getppid() != parent_) return lost_({-1, "", parent_, {}});
      for (const Peer& p : others_) {
        if (gone(p)) return lost_(p);
      }
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace qkv
