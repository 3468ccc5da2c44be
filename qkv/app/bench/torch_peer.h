// PyTorch in a separate process, asked to run the same case alternating with qkv.
#pragma once

#include <string>

#include "qkv/app/bench/peer_process.h"

namespace qkv::bench {

class TorchPeer {
 public:
  /// Starts it with that build of BLAS; `compiled`: models go through torch.compile. Throws IoError when it cannot be
  /// started.
  TorchPeer(const PythonSetup& setup, const Blas& blas, bool compiled = false);

  const std::string& name() const { return name_; }
  /// Builds a case; returns its number of parameters.
  double build(const std::string& sizes);
  /// Seconds of one run, the mean over `times`.
  double run(int64_t times);
  /// The most memory the case took, in bytes.
  double memory();

 private:
  double ask(const std::string& request, const char* field);
  std::string name_, python_;  // python_: what starts its Python
  PeerProcess process_;
};

}  // namespace qkv::bench
