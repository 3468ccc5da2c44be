// The machine a process runs on, and what it shares with the others there.
#pragma once

#include <string>
#include <vector>

#include "qkv/dist/processes.h"

namespace qkv {

std::string host_name();
/// "process 3 on HOST".
std::string process_name(int rank);

/// One of the processes, as the others know it.
struct Peer {
  int rank = 0;
  std::string host;
  int64_t pid = 0;
  std::vector<int64_t> processors;  // it may run on
};
/// All of them, by rank.
std::vector<Peer> gather_peers(Processes& processes);
/// How many threads process `rank` should have: its processors, divided among those that run on the same ones.
int threads_of(const std::vector<Peer>& peers, int rank);

}  // namespace qkv
