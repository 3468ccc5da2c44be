// Watches the other processes of this machine and the launcher: when one is gone, nobody waits for it.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "qkv/dist/host.h"

namespace qkv {

/// Calls `lost` once, from its own thread, when a watched process has ended or the one that started this process has
/// (rank -1). A launcher notices the same, but says nothing of how to continue, and some leave the others waiting.
class Watch {
 public:
  using Lost = std::function<void(const Peer& gone)>;
  Watch(const std::vector<Peer>& peers, int rank, Lost lost);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// Processes may end from now on.
  void stop();

 private:
  void look();

  std::vector<Peer> others_;
  int64_t parent_;
  Lost lost_;
  std::mutex mutex_;
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

}  // namespace qkv
