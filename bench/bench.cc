// The machinery of the benchmarks.
#include "bench/bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "qkv/base/parallel.h"
#include "qkv/kernels/machine.h"
#include "qkv/kernels/simd_target.h"

namespace qkv::bench {
namespace {

double seconds_now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

double run_for(const std::function<void()>& run, int64_t times) {
  const double begin = seconds_now();
  for (int64_t i = 0; i < times; ++i) run();
  return (seconds_now() - begin) / static_cast<double>(times);
}

[[noreturn]] void usage_error(const std::string& message) {
  std::fprintf(stderr, "%s; see --help\n", message.c_str());
  std::exit(2);
}

int positive(const std::string& text) {
  char* end = nullptr;
  const long n = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || n < 1 || n > 1024) usage_error("'" + text + "' is not a number from 1 to 1024");
  return static_cast<int>(n);
}

}  // namespace

Options parse_options(int argc, char** argv, const std::string& what) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const auto value = [&] {
      if (i + 1 >= argc) usage_error(arg + " needs a value");
      return std::string(argv[++i]);
    };
    if (arg == "--json") {
      o.json = true;
    } else if (arg == "--only") {
      o.only = value();
    } else if (arg == "--rounds") {
      o.rounds = positive(value());
    } else if (arg == "--target") {
      o.target = value();
    } else if (arg == "--threads") {
      std::stringstream list(value());
      for (std::string n; std::getline(list, n, ',');) o.threads.push_back(positive(n));
    } else if (arg == "--help") {
      std::printf(
          "%s\n  --json           one JSON object per line instead of the table\n  --threads 1,2    thread counts "
          "(default: 1 and all)\n  --only TEXT      cases whose name contains TEXT\n  --rounds N       timing rounds "
          "(default 9)\n  --target NAME    SIMD target, one of:",
          what.c_str());
      for (const auto& t : kernels::simd_targets()) std::printf(" %s", t.c_str());
      std::printf("\n");
      std::exit(0);
    } else {
      usage_error("unknown option " + arg);
    }
  }
  if (!o.target.empty() && !kernels::force_simd_target(o.target))
    usage_error("this processor or build has no SIMD target " + o.target);
  if (o.threads.empty()) {
    o.threads = {1};
    if (num_threads() > 1) o.threads.push_back(num_threads());
  }
  return o;
}

std::vector<Timing> time_interleaved(const std::vector<Runner>& runners, int rounds) {
  constexpr double kSlice = 0.005;
  std::vector<int64_t> times;
  for (const auto& r : runners) {
    r.run();
    const double once = std::min(run_for(r.run, 1), run_for(r.run, 1));
    times.push_back(std::max<int64_t>(1, static_cast<int64_t>(kSlice / std::max(once, 1e-9))));
  }
  std::vector<std::vector<double>> samples(runners.size());
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < runners.size(); ++i) {
      runners[i].run();  // the one before left other data in the caches and maybe its threads spinning
      samples[i].push_back(run_for(runners[i].run, times[i]));
    }
  std::vector<Timing> result;
  for (auto& s : samples) {
    std::sort(s.begin(), s.end());
    result.push_back({.best = s.front(), .median = s[s.size() / 2]});
  }
  return result;
}

std::vector<Limits> measure_limits(const Options& options) {
  std::vector<Limits> all;
  for (const int threads : options.threads) {
    const Limits l{.threads = threads,
                   .flops = kernels::measure_fma_peak(threads),
                   .bytes = kernels::measure_read_bandwidth(threads)};
    all.push_back(l);
    if (options.json)
      std::printf("{\"case\":\"limits\",\"target\":\"%s\",\"threads\":%d,\"gflops\":%.1f,\"read_gb_per_s\":%.2f}\n",
                  kernels::simd_target().c_str(), threads, l.flops / 1e9, l.bytes / 1e9);
    else
      std::printf("%s, %d thread%s: FMA peak %.0f GFLOP/s, reads %.1f GB/s\n", kernels::simd_target().c_str(), threads,
                  threads == 1 ? "" : "s", l.flops / 1e9, l.bytes / 1e9);
  }
  return all;
}

}  // namespace qkv::bench
