// Runs the contestants of a case alternating, so that noise hits both.
#include "qkv/app/bench/measure.h"

#include <malloc.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "qkv/base/error.h"
#include "qkv/core/memory.h"
#include "qkv/kernels/machine.h"

namespace qkv::bench {
namespace {

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

}  // namespace

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
  m.who.push_back({"qkv", [&](int64_t times) { return seconds_of(m.work.run, times); }});
  for (const auto& peer : peers) m.who.push_back({peer->name(), [&peer](int64_t times) { return peer->run(times); }});
  take_turns(m.who, {.rounds = options.rounds, .slice = options.slice, .rest = 0.02});
  m.who[0].memory = own_status("VmHWM") - before;
  if (m.work.weights > 0)
    m.bandwidth = kernels::measure_read_bandwidth(options.threads, static_cast<int64_t>(m.work.weights));
  for (size_t i = 0; i < peers.size(); ++i) m.who[i + 1].memory = peers[i]->memory();
  for (Contestant& who : m.who) who.run = nullptr;  // it refers to what ends here
  return m;
}

}  // namespace qkv::bench
