// Turns, medians, ratios and limits.
#include "qkv/app/bench/harness.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "qkv/kernels/machine.h"
#include "qkv/kernels/simd_target.h"

namespace qkv::bench {

double seconds_of(const std::function<void()>& call, int64_t times) {
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < times; ++i) call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / static_cast<double>(times);
}

double Contestant::best() const { return seconds.empty() ? 0 : *std::min_element(seconds.begin(), seconds.end()); }

double Contestant::median() const {
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  return sorted.empty() ? 0 : sorted[sorted.size() / 2];
}

void take_turns(std::vector<Contestant>& who, const Turns& how) {
  const auto rest = [&] {
    if (who.size() > 1 && how.rest > 0) std::this_thread::sleep_for(std::chrono::duration<double>(how.rest));
  };
  std::vector<int64_t> times;
  for (const Contestant& c : who) {
    c.run(1);
    rest();
    times.push_back(std::max<int64_t>(1, std::lround(how.slice / std::max(c.run(1), 1e-9))));
  }
  for (int round = 0; round < how.rounds; ++round) {
    for (size_t i = 0; i < who.size(); ++i) {
      rest();
      if (times[i] > 1) who[i].run(1);
      who[i].seconds.push_back(who[i].run(times[i]));
    }
    if (how.after_round) how.after_round();
  }
}

std::vector<double> ratios(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> all;
  for (size_t i = 0; i < a.size(); ++i) all.push_back(a[i] / b[i]);
  std::sort(all.begin(), all.end());
  return all;
}

const Contestant* best_other(const std::vector<Contestant>& who) {
  const Contestant* best = nullptr;
  for (size_t i = 1; i < who.size(); ++i) {
    if (!who[i].beside && (!best || who[i].median() < best->median())) best = &who[i];
  }
  return best;
}

std::vector<double> ratios(const std::vector<Contestant>& who) {
  const Contestant* best = best_other(who);
  return best ? ratios(best->seconds, who[0].seconds) : std::vector<double>();
}

double least_ratio(const std::vector<Contestant>& who) {
  double least = 0;
  for (size_t i = 1; i < who.size(); ++i) {
    if (!who[i].beside && (least == 0 || who[i].best() < least)) least = who[i].best();
  }
  return who.empty() ? 0 : least / who[0].best();
}

Limits measure_limits(int threads, bool json) {
  const Limits l{threads, kernels::measure_fma_peak(threads), kernels::measure_read_bandwidth(threads)};
  if (json) {
    const nlohmann::json row = {{"case", "limits"},
                                {"target", kernels::simd_target()},
                                {"threads", threads},
                                {"gflops", l.flops / 1e9},
                                {"read_gb_per_s", l.bytes / 1e9}};
    std::printf("%s\n", row.dump().c_str());
  } else {
    std::printf("%s, %d thread%s: FMA peak %.0f GFLOP/s, reads %.1f GB/s\n", kernels::simd_target().c_str(), threads,
                threads == 1 ? "" : "s", l.flops / 1e9, l.bytes / 1e9);
  }
  std::fflush(stdout);
  return l;
}

}  // namespace qkv::bench
