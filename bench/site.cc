// The cases that a site is judged by, timed alone: bench/site.mjs runs this program as a native one and as WebAssembly.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>

#include "qkv/app/bench/cases.h"
#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "qkv/kernels/simd_target.h"
#if defined(__EMSCRIPTEN__)
#include <emscripten.h>
#endif

namespace {

using nlohmann::json;

/// Of this process: a machine that also does other work counts little.
double processor_seconds() {
#if defined(__EMSCRIPTEN__)
  return EM_ASM_DOUBLE({
    const used = process.cpuUsage();
    return (used.user + used.system) / 1e6;
  });
#else
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
#endif
}

/// The least milliseconds of processor time of one run, over a second at least and after half a second of warming up: a
/// browser's engine compiles what runs often anew.
double least_ms(const qkv::bench::Work& work) {
  constexpr double kWarm = 0.5, kTimed = 1, kSample = 0.02;
  const double begin = processor_seconds();
  do {
    work.run();
  } while (processor_seconds() - begin < kWarm);
  double least = 1e9;
  const double start = processor_seconds();
  for (double now = start; now - start < kTimed;) {
    const double sample = now;
    int runs = 0;
    for (; now - sample < kSample; ++runs) {
      work.run();
      now = processor_seconds();
    }
    least = std::min(least, 1e3 * (now - sample) / runs);
  }
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
