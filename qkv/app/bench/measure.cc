// Runs the contestants of a case alternating, so that noise hits both.
#include "qkv/app/bench/measure.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "qkv/base/error.h"
#include "qkv/core/memory.h"
#include "qkv/kernels/machine.h"

namespace qkv::bench {
namespace {

double seconds_of(const std::function<void()>& run, int64_t times) {
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < times; ++i) run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / static_cast<double>(times);
}

// A line of /proc/self/status, in bytes; 0 where there is no such file.
double own_status(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string name, rest; status >> name && std::getline(status, rest);) {
    if (name == field + ":") return 1024 * std::strtod(rest.c_str(), nullptr);
  }
  return 0;
}

void forget_peak_memory() {
  release_cached_memory();
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";
}

// Threads of the one before may still spin for a moment.
void settle(size_t contestants) {
  if (contestants > 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

int64_t runs_for(double slice, double once) {
  return std::max<int64_t>(1, static_cast<int64_t>(std::lround(slice / std::max(once, 1e-9))));
}

}  // namespace

double Contestant::median() const {
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  return sorted.empty() ? 0 : sorted[sorted.size() / 2];
}

std::vector<double> Measured::ratios() const {
  std::vector<double> all;
  if (who.size() < 2) return all;
  // The best of PyTorch's builds over all rounds, not the luckiest of each round.
  const auto best = std::min_element(who.begin() + 1, who.end(),
                                     [](const Contestant& a, const Contestant& b) { return a.median() < b.median(); });
  for (size_t i = 0; i < best->seconds.size(); ++i) all.push_back(best->seconds[i] / who[0].seconds[i]);
  std::sort(all.begin(), all.end());
  return all;
}

Measured measure(nlohmann::json sizes, const MeasureOptions& options) {
  const std::string kind = sizes.at("kind");
  const bool epoch = kind == "epoch";
  if (epoch) add_text(sizes, options.folders);
  forget_peak_memory();
  const double before = own_status("VmRSS");
  Measured m;
  m.work = build_work(sizes);
  std::vector<std::unique_ptr<TorchPeer>> peers;
  if (options.torch) {
    for (const std::string& blas : blas_builds(*options.torch)) {
      // The tuned build for training is known; for decoding and single products the better one is found here.
      if (!peers.empty() && (epoch || kind == "train")) break;
      peers.push_back(std::make_unique<TorchPeer>(*options.torch, blas));
      const auto count = static_cast<int64_t>(peers.back()->build(sizes.dump()));
      if (count != m.work.parameters) {
        throw ConfigError("[bench] " + sizes.value("model", kind) + ": PyTorch's model has " + std::to_string(count) +
                          " parameters, qkv's " + std::to_string(m.work.parameters));
      }
    }
  }
  m.who.push_back({"qkv", {}, 0});
  for (const auto& peer : peers) m.who.push_back({peer->name(), {}, 0});
  std::vector<std::function<double(int64_t)>> run{[&](int64_t times) { return seconds_of(m.work.run, times); }};
  for (const auto& peer : peers) run.push_back([&peer](int64_t times) { return peer->run(times); });
  std::vector<int64_t> times;
  for (const auto& r : run) {
    r(1);
    settle(run.size());
    times.push_back(runs_for(options.slice, r(1)));
  }
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t i = 0; i < run.size(); ++i) {
      settle(run.size());
      if (times[i] > 1) run[i](1);  // the one before left other data in the caches
      m.who[i].seconds.push_back(run[i](times[i]));
    }
  }
  m.who[0].memory = own_status("VmHWM") - before;
  if (m.work.weights > 0)
    m.bandwidth = kernels::measure_read_bandwidth(options.threads, static_cast<int64_t>(m.work.weights));
  for (size_t i = 0; i < peers.size(); ++i) m.who[i + 1].memory = peers[i]->memory();
  return m;
}

}  // namespace qkv::bench
