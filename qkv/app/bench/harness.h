// What every benchmark shares: contestants that take turns, and the machine's own limits.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace qkv::bench {

/// Mean seconds of one call, over `times` of them.
double seconds_of(const std::function<void()>& call, int64_t times);

/// One who takes part: a name, and how to run it.
struct Contestant {
  std::string name;
  std::function<double(int64_t times)> run;  // gives the mean seconds of one run
  std::vector<double> seconds = {};          // of one run, one per round
  double memory = 0;                         // the most bytes it took

  double best() const;
  double median() const;
};

struct Turns {
  int rounds = 7;
  double slice = 0.2;  // seconds of one sample, at least one run
  double rest = 0;     // seconds before each sample: threads of the one before may still spin
  std::function<void()> after_round = nullptr;
};

/// Times the contestants in turns, so that noise hits all of them: in each round every one runs for about a slice,
/// after one run that brings its data into the caches.
void take_turns(std::vector<Contestant>& who, const Turns& how);

/// Each round's a / b, in rising order.
std::vector<double> ratios(const std::vector<double>& a, const std::vector<double>& b);
/// Of each round, the time of the best other by the first one's, in rising order; empty when there is no other. The
/// best is the one with the least median, not the luckiest of each round.
std::vector<double> ratios(const std::vector<Contestant>& who);

/// The machine with this many threads: operations and bytes per second.
struct Limits {
  int threads = 1;
  double flops = 0, bytes = 0;
};
/// Measures and prints them.
Limits measure_limits(int threads, bool json);

}  // namespace qkv::bench
