// Timing of one bench case: qkv and PyTorch turn by turn, medians, spread, memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "qkv/app/bench/cases.h"
#include "qkv/app/bench/harness.h"
#include "qkv/app/bench/torch_peer.h"

namespace qkv::bench {

struct MeasureOptions {
  int rounds = 7;      // at least 5
  double slice = 0.2;  // seconds of one sample, at least one run
  int threads = 1;
  std::optional<PythonSetup> torch;
  bool compiled = false;                  // a training step of compiled PyTorch beside the others
  std::vector<std::string> folders = {};  // of real text for the epochs
};

struct Measured {
  std::vector<Contestant> who;  // qkv first
  Work work;
  double bandwidth = 0;  // bytes per second when as much memory as its weights take is only read; 0: it has none
};

/// Builds, warms up and times what the sizes describe. Throws ConfigError when PyTorch's model has another number of
/// parameters.
Measured measure(nlohmann::json sizes, const MeasureOptions& options);

}  // namespace qkv::bench
