// Runs the contestants of a case alternating, so that noise hits both.
#include "qkv/app/bench/measure.h"

#include <malloc.h>

#include <cstdlib>
#include <fstream>
#include <memory>
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

std::string kind_of(const nlohmann::json& sizes) { return sizes.at("kind").get<std::string>(); }

bool compiled_one(const nlohmann::json& sizes, const MeasureOptions& options) {
  return options.compiled && kind_of(sizes) == "train";
}

void forget_peak_memory() {
  release_cached_memory();
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";
}

// PyTorch with each BLAS that is there; each has built the case.
std::vector<std::unique_ptr<TorchPeer>> start_peers(const nlohmann::json& sizes, const MeasureOptions& options,
                                                    int64_t parameters) {
  std::vector<std::unique_ptr<TorchPeer>> peers;
  if (!options.torch) return peers;
  const std::vector<Blas> builds = blas_builds(*options.torch);
  for (const Blas& blas : builds) peers.push_back(std::make_unique<TorchPeer>(*options.torch, blas));
  if (compiled_one(sizes, options)) peers.push_back(std::make_unique<TorchPeer>(*options.torch, builds.front(), true));
  for (const auto& peer : peers) {
    const auto count = static_cast<int64_t>(peer->build(sizes.dump()));
    if (count != parameters) {
      throw ConfigError("[bench] " + sizes.value("model", kind_of(sizes)) + ": PyTorch's model has " +
                        std::to_string(count) + " parameters, qkv's " + std::to_string(parameters));
    }
  }
  return peers;
}

}  // namespace

Measured measure(nlohmann::json sizes, const MeasureOptions& options) {
  if (kind_of(sizes) == "epoch") add_text(sizes, options.folders);
  forget_peak_memory();
  const double before = own_status("VmRSS");
  Measured m;
  m.work = build_work(sizes);
  const std::vector<std::unique_ptr<TorchPeer>> peers = start_peers(sizes, options, m.work.parameters);
  m.who.push_back({"qkv", [&](int64_t times) { return seconds_of(m.work.run, times); }});
  for (const auto& peer : peers) m.who.push_back({peer->name(), [&peer](int64_t times) { return peer->run(times); }});
  m.who.back().beside = !peers.empty() && compiled_one(sizes, options);
  take_turns(m.who, {.rounds = options.rounds, .slice = options.slice, .rest = 0.02});
  m.who[0].memory = own_status("VmHWM") - before;
  if (m.work.weights > 0)
    m.bandwidth = kernels::measure_read_bandwidth(options.threads, static_cast<int64_t>(m.work.weights));
  for (size_t i = 0; i < peers.size(); ++i) m.who[i + 1].memory = peers[i]->memory();
  for (Contestant& who : m.who) who.run = nullptr;  // it refers to what ends here
  return m;
}

}  // namespace qkv::bench
