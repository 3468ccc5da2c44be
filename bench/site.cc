// The cases that a site is judged by, timed alone: bench/site.mjs runs this program as a native one and as WebAssembly.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "qkv/app/bench/cases.h"
#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "qkv/kernels/simd_target.h"

namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// The least milliseconds of one run, over half a second at least and after a second of warming up: a browser's engine
/// compiles what runs often anew.
double least_ms(const qkv::bench::Work& work) {
  const auto begin = Clock::now();
  do {
    work.run();
  } while (seconds_since(begin) < 1);
  double least = 1e9;
  const auto start = Clock::now();
  do {
    const auto one = Clock::now();
    work.run();
    least = std::min(least, 1e3 * seconds_since(one));
  } while (seconds_since(start) < 0.5);
  return least;
}

json attention(bool backward) {
  return {{"kind", "attention"}, {"batch", 1},  {"heads", 8},      {"queries", 512},
          {"keys", 512},         {"width", 64}, {"causal", false}, {"backward", backward}};
}

json gpt_step() {
  return {{"kind", "train"}, {"model", "gpt"}, {"vocabulary", 256}, {"block", 128},  {"width", 256},
          {"heads", 8},      {"layers", 4},    {"batch", 16},       {"length", 128}, {"dropout", 0.0}};
}

}  // namespace

/// bench_site [TARGET]: one JSON object.
int main(int argc, char** argv) {
  try {
    if (argc > 1) qkv::kernels::force_simd_target(argv[1]);
    qkv::set_num_threads(1);
    const json result = {
        {"target", qkv::kernels::simd_target()},
        {"attention 512, forward", least_ms(qkv::bench::build_attention(attention(false)))},
        {"attention 512, forward and backward", least_ms(qkv::bench::build_attention(attention(true)))},
        {"GPT step, 16 sequences of 128", least_ms(qkv::bench::build_training(gpt_step()))}};
    std::printf("%s\n", result.dump().c_str());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
