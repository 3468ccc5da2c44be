// What the benchmarks share: timing rounds, options, tables, the machine's limits at the top.
#pragma once

#include <functional>
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

/// One contestant: a name and what to run.
struct Runner {
  std::string name;
  std::function<void()> run;
};

struct Timing {
  double best = 0, median = 0;  // seconds of one run
};

/// Times the runners alternating: `rounds` rounds, in each every runner runs for about 5 ms (at least once).
std::vector<Timing> time_interleaved(const std::vector<Runner>& runners, int rounds);

/// The machine's limits with this many threads.
struct Limits {
  int threads = 1;
  double flops = 0, bytes = 0;  // a second
};
/// Measures and prints them.
std::vector<Limits> measure_limits(const Options& options);

}  // namespace qkv::bench
