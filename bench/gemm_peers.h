// Other people's matrix products, found at run time, for side-by-side timing.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "qkv/kernels/gemm/gemm.h"

namespace qkv::bench {

/// With the environment variable TRIXIE naming a Debian tree, runs this program again under that tree's loader and
/// libraries, so that its (newer) OpenBLAS, BLIS, MKL and oneDNN can be loaded: once for each number of threads, on as
/// many processors; then exits. The target AVX2 holds the libraries to it too. Returns if not set or already done.
void rerun_under_trixie(char** argv, const Options& options);

/// A library's sgemm.
struct Peer {
  std::string name;
  std::function<void(const kernels::GemmArgs&)> gemm;  // C = op(A) op(B)
};

/// The libraries that can be loaded, set to use this many threads. Empty without TRIXIE.
std::vector<Peer> load_peers(int threads);

}  // namespace qkv::bench
