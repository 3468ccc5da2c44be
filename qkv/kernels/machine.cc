// Measures the FMA peak and the read bandwidth on its own threads, all started together.
#include "qkv/kernels/machine.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "qkv/base/clock.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/machine.cc"
#include "hwy/foreach_target.h"
// After foreach_target: what follows is compiled once per target.
#include "qkv/kernels/vector_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

constexpr int kChains = 12;  // more than latency times throughput of any core, fewer than its registers

// Floating-point operations done by one round.
double multiply_round(int64_t steps, float* sink) {
  const FloatTag d;
  const FloatVec a = hn::Set(d, 0.999f), b = hn::Set(d, 0.001f);
  // All different, or the compiler would do one chain for several.
  FloatVec v0 = hn::Set(d, 1.0f), v1 = hn::Add(v0, b), v2 = hn::Add(v1, b), v3 = hn::Add(v2, b);
  FloatVec v4 = hn::Add(v3, b), v5 = hn::Add(v4, b), v6 = hn::Add(v5, b), v7 = hn::Add(v6, b);
  FloatVec v8 = hn::Add(v7, b), v9 = hn::Add(v8, b), v10 = hn::Add(v9, b), v11 = hn::Add(v10, b);
  for (int64_t i = 0; i < steps; ++i) {
    v0 = hn::MulAdd(v0, a, b);
    v1 = hn::MulAdd(v1, a, b);
    v2 = hn::MulAdd(v2, a, b);
    v3 = hn::MulAdd(v3, a, b);
    v4 = hn::MulAdd(v4, a, b);
    v5 = hn::MulAdd(v5, a, b);
    v6 = hn::MulAdd(v6, a, b);
    v7 = hn::MulAdd(v7, a, b);
    v8 = hn::MulAdd(v8, a, b);
    v9 = hn::MulAdd(v9, a, b);
    v10 = hn::MulAdd(v10, a, b);
    v11 = hn::MulAdd(v11, a, b);
  }
  const FloatVec low = hn::Add(hn::Add(hn::Add(v0, v1), hn::Add(v2, v3)), hn::Add(v4, v5));
  const FloatVec high = hn::Add(hn::Add(hn::Add(v6, v7), hn::Add(v8, v9)), hn::Add(v10, v11));
  *sink = hn::GetLane(hn::Add(low, high));
  return 2.0 * kChains * static_cast<double>(kFloatLanes * steps);
}

double read_round(const float* x, int64_t n, float* sink) {
  *sink = reduce_sum(
      n, [](FloatVec v) HWY_ATTR { return v; }, x);
  return static_cast<double>(n) * sizeof(float);
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {
namespace {

HWY_EXPORT(multiply_round);
HWY_EXPORT(read_round);

// The best rate, over `tries`, of work(thread) done on all threads at once; work returns how much it did. Each thread
// is rated by its own processor time: another program that takes a turn in between does not lower the machine's limit.
double best_rate(int threads, int tries, const std::function<double(int)>& work) {
  double best = 0;
  for (int t = 0; t < tries; ++t) {
    std::atomic<int> waiting{threads};
    std::vector<double> rate(static_cast<size_t>(threads));
    const auto run = [&](int i) {
      waiting.fetch_sub(1);
      while (waiting.load() > 0) std::this_thread::yield();
      const double begin = thread_seconds(), done = work(i);
      rate[static_cast<size_t>(i)] = done / (thread_seconds() - begin);
    };
    std::vector<std::thread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back(run, i);
    run(0);
    for (auto& o : others) o.join();
    double total = 0;
    for (const double r : rate) total += r;
    best = std::max(best, total);
  }
  return best;
}

}  // namespace

double measure_fma_peak(int threads) {
  std::vector<float> sinks(static_cast<size_t>(threads) * 16);
  const auto work = [&](int64_t steps) {
    return [&sinks, steps](int i) { return HWY_DYNAMIC_DISPATCH(multiply_round)(steps, sinks.data() + i * 16); };
  };
  // How many steps take 20 ms, from a short run of one thread.
  constexpr int64_t kProbe = 100000;
  const double rate = best_rate(1, 3, work(kProbe));
  const double per_step = HWY_DYNAMIC_DISPATCH(multiply_round)(1, sinks.data());
  return best_rate(threads, 10, work(static_cast<int64_t>(rate / per_step * 0.02) + 1));
}

double measure_read_bandwidth(int threads, int64_t bytes, int tries) {
  const int64_t floats = std::max<int64_t>(bytes / static_cast<int64_t>(sizeof(float)), threads);
  const int64_t rounds = std::max<int64_t>(kBeyondCaches / bytes, 1);
  const std::vector<float> array(static_cast<size_t>(floats), 1.0f);
  std::vector<float> sinks(static_cast<size_t>(threads) * 16);
  return best_rate(threads, tries, [&](int i) {
    const int64_t first = floats * i / threads, last = floats * (i + 1) / threads;
    double read = 0;
    for (int64_t r = 0; r < rounds; ++r)
      read += HWY_DYNAMIC_DISPATCH(read_round)(array.data() + first, last - first, sinks.data() + i * 16);
    return read;
  });
}

}  // namespace qkv::kernels
#endif
