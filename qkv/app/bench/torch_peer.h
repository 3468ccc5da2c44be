// PyTorch in a separate process, asked to run the same case alternating with qkv.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace qkv::bench {

/// Where to find PyTorch and how to start it.
struct TorchSetup {
  std::string python;  // an interpreter that can import torch
  std::string root;    // a directory tree to enter with chroot first; empty: none
  int threads = 1;
  bool avx2 = false;  // no wider vectors than AVX2
};

/// Builds of BLAS found beside that Python that it can be started with, best for training first ("openblas-openmp",
/// "blis-openmp"); one empty name, for the default, when there is none.
std::vector<std::string> blas_builds(const TorchSetup& setup);

class TorchPeer {
 public:
  /// Starts it with that build of BLAS and a malloc that keeps large blocks. Throws IoError when it cannot be started.
  TorchPeer(const TorchSetup& setup, const std::string& blas);
  ~TorchPeer();
  TorchPeer(const TorchPeer&) = delete;
  TorchPeer& operator=(const TorchPeer&) = delete;

  const std::string& name() const { return name_; }
  /// Builds a case; returns its number of parameters.
  double build(const std::string& sizes);
  /// Seconds of one run, the mean over `times`.
  double run(int64_t times);
  /// The most memory the case took, in bytes.
  double memory();

 private:
  double ask(const std::string& request, const char* field);
  std::string name_;
  int pid_ = -1;
  std::FILE *to_ = nullptr, *from_ = nullptr;
};

}  // namespace qkv::bench
