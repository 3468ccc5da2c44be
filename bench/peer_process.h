// A peer library running in its own process, driven by lines over a pipe.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace qkv::bench {

/// Starts a command and talks to it: one line out, one line back. Ends it when destroyed.
class PeerProcess {
 public:
  /// Null when the command cannot be started.
  static std::unique_ptr<PeerProcess> start(const std::vector<std::string>& command);
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  /// The answer to one request; empty when the process is gone.
  std::string ask(const std::string& request);

 private:
  PeerProcess(int pid, std::FILE* to, std::FILE* from) : pid_(pid), to_(to), from_(from) {}
  int pid_;
  std::FILE *to_, *from_;
};

/// The command that runs a script of bench/peers with its arguments inside the directory $TRIXIE (a Debian root with
/// PyTorch and ONNX Runtime), tuned: the OpenMP build of OpenBLAS and a malloc that keeps large blocks. Empty when
/// TRIXIE is not set.
std::vector<std::string> peer_command(const std::string& script, const std::vector<std::string>& arguments);

}  // namespace qkv::bench
