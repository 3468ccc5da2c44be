// How cost grows: one size of a case at a time, doubled step by step.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "qkv/app/bench/measure.h"
#include "qkv/view/plot.h"

namespace qkv::bench {

/// One line of a picture: a case and what of its sizes changes.
struct Sweep {
  std::string picture;  // sweeps with the same name are drawn together
  std::string name;     // of the line
  std::string axis;     // what changes, in words
  nlohmann::json sizes;
  std::vector<std::string> varied;  // keys of the sizes; none: the number of threads
  std::vector<int> values;
};

/// All sweeps; `quick` makes them tiny. `threads` is the most that are tried.
std::vector<Sweep> sweeps(int threads, bool quick);

struct Growth {
  const Sweep* sweep = nullptr;
  std::vector<Measured> measured;  // one per value
};

/// Measures one value of a sweep.
Measured measure_value(const Sweep& sweep, int value, const MeasureOptions& options);
/// Time over the size of all that share a picture, both axes logarithmic; the power that fits is in the legend.
Plot growth_plot(const std::vector<const Growth*>& of);

}  // namespace qkv::bench
