// Host, processors and process number of every process.
#include "qkv/dist/host.h"

#if defined(__linux__)
#include <sched.h>
#endif
#include <unistd.h>

#include <algorithm>

#include "qkv/base/processors.h"
#include "qkv/dist/pack.h"

namespace qkv {

std::string host_name() {
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) != 0) return "an unknown host";
  return name;
}

std::string process_name(int rank) { return "process " + std::to_string(rank) + " on " + host_name(); }

std::vector<Peer> gather_peers(Processes& processes) {
  std::vector<int64_t> processors;
#if defined(__linux__)
  if (cpu_set_t set; sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &set)) processors.push_back(i);
    }
  }
#endif
  using Message = std::tuple<std::string, int64_t, std::vector<int64_t>>;
  std::vector<Peer> peers;
  for (const std::string& message : processes.gather(packed(Message{host_name(), getpid(), processors}))) {
    auto [host, pid, list] = unpacked<Message>(message);
    peers.push_back({static_cast<int>(peers.size()), std::move(host), pid, std::move(list)});
  }
  return peers;
}

int threads_of(const std::vector<Peer>& peers, int rank) {
  const Peer& me = peers[static_cast<size_t>(rank)];
  const auto sharing = std::count_if(peers.begin(), peers.end(),
                                     [&](const Peer& p) { return p.host == me.host && p.processors == me.processors; });
  return std::max(1, usable_processors() / static_cast<int>(sharing));
}

}  // namespace qkv
