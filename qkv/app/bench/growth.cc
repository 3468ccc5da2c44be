// Sweeps over length, width, batch and threads.
#include "qkv/app/bench/growth.h"

#include <algorithm>
#include <cmath>

#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "qkv/view/text.h"

namespace qkv::bench {
namespace {

using nlohmann::json;

std::vector<int> doubled(int from, int to) {
  std::vector<int> all;
  for (int x = from; x <= to; x *= 2) all.push_back(x);
  return all;
}

// The sizes of a case of the table.
json sizes_like(const std::string& kind, const std::string& name) {
  for (const BenchCase& c : case_table()) {
    if (c.kind == kind && c.name == name) return sizes_of(c, false);
  }
  throw ConfigError("[bench] no case '" + kind + " " + name + "'");
}

json gpt_sizes(int batch, int length) {
  json sizes = sizes_like("train", "gpt");
  sizes["batch"] = batch;
  sizes["length"] = sizes["block"] = length;
  return sizes;
}

json attention_sizes(bool causal) {
  json sizes = sizes_like("attention", "forward 512");
  sizes["causal"] = causal;
  return sizes;
}

// The power of a size that time grows with, over the larger half of the sizes: small ones pay fixed costs.
double fitted_power(const std::vector<double>& x, const std::vector<double>& y) {
  const size_t n = x.size();
  if (n < 2) return 0;
  const size_t from = std::min(n / 2, n - 2);
  return std::log(y[n - 1] / y[from]) / std::log(x[n - 1] / x[from]);
}

}  // namespace

std::vector<Sweep> sweeps(int threads, bool quick) {
  const auto sizes = [&](int from, int to) { return quick ? doubled(from, 2 * from) : doubled(from, to); };
  const int batch = quick ? 1 : 16, length = quick ? 8 : 128;
  std::vector<int> counts;
  for (int n = 1; n < threads; n *= 2) counts.push_back(n);
  counts.push_back(threads);
  return {
      {"attention", "full", "keys", attention_sizes(false), {"queries", "keys"}, sizes(128, 8192)},
      {"attention", "causal", "keys", attention_sizes(true), {"queries", "keys"}, sizes(128, 8192)},
      {"length", "GPT", "length", gpt_sizes(quick ? 1 : 4, length), {"length", "block"}, sizes(32, 2048)},
      {"width", "GPT", "width", gpt_sizes(batch, length), {"width"}, sizes(64, 512)},
      {"batch", "GPT", "sequences in a batch", gpt_sizes(batch, length), {"batch"}, sizes(1, 64)},
      {"threads", "GPT", "threads", gpt_sizes(batch, length), {}, counts},
  };
}

Measured measure_value(const Sweep& sweep, int value, const MeasureOptions& options) {
  json sizes = sweep.sizes;
  for (const std::string& key : sweep.varied) sizes[key] = value;
  MeasureOptions how = options;
  if (sweep.varied.empty()) how.threads = value;
  if (how.torch) how.torch->threads = how.threads;
  const int before = num_threads();
  set_num_threads(how.threads);
  Measured m = measure(std::move(sizes), how);
  set_num_threads(before);
  return m;
}

Plot growth_plot(const std::vector<const Growth*>& of) {
  const Sweep& first = *of.front()->sweep;
  Plot plot{.title = first.sizes.at("kind") == "attention" ? "Attention forward: time over " + first.axis
                                                           : "A training step: time over " + first.axis,
            .x = Axis{.title = first.axis, .log = true},
            .y = Axis{.title = "milliseconds", .log = true}};
  for (const Growth* g : of) {
    const size_t contestants = g->measured.empty() ? 0 : g->measured.front().who.size();
    for (size_t i = 0; i < contestants; ++i) {
      Series line{.marks = Marks::kLineAndDots, .dashed = i > 0, .color = static_cast<int>(plot.series.size())};
      for (size_t k = 0; k < g->measured.size(); ++k) {
        line.x.push_back(g->sweep->values[k]);
        line.y.push_back(g->measured[k].who[i].median() * 1e3);
      }
      line.name = g->measured.front().who[i].name + ", " + g->sweep->name + ": power " +
                  format_number(fitted_power(line.x, line.y), 2);
      plot.series.push_back(std::move(line));
    }
  }
  return plot;
}

}  // namespace qkv::bench
