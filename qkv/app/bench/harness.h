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
  bool beside = false;                       // shown, but nothing is compared with it

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
/// Who is compared with the first one: the other with the least median, not the luckiest of each round; null when
/// there is no other.
const Contestant* best_other(const std::vector<Contestant>& who);
/// Of each round, the best other's time by the first one's, in rising order; empty when there is no other.
std::vector<double> ratios(const std::vector<Contestant>& who);
/// The least time of any other by the first one's; 0 when there is no other.
double least_ratio(const std::vector<Contestant>& who);

/// The machine with this many threads: operations and bytes per second.
struct Limits {
  int threads = 1;
  double flops = 0, bytes = 0;
};
/// Measures and prints them.
Limits measure_limits(int threads, bool json);

}  // namespace qkv::bench
