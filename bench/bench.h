// The options of the benchmarks.
#pragma once

#include <string>
#include <vector>

namespace qkv::bench {

/// --json, --threads 1,2, --only text, --rounds n, --target NAME, --peers.
struct Options {
  bool json = false;
  std::vector<int> threads;  // default: 1 and all
  std::string only;          // cases whose name contains it
  int rounds = 9;
  std::string target;  // SIMD target; empty: the best
};

/// Reads the command line; on a mistake prints one line and exits with 2. --help prints the options and exits.
Options parse_options(int argc, char** argv, const std::string& what);

}  // namespace qkv::bench
