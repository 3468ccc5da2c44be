// Experiment: a key made longer gains weight if it points along the query and loses weight if it points against it.
#include <cmath>

#include "qkv/lab/experiments.h"
#include "qkv/lab/key_change.h"
#include "qkv/lab/vectors.h"
#include "qkv/ops/ops.h"

namespace qkv::lab {
namespace {

void draw(Result& r, const KeyLookup& lookup, double alpha, const std::vector<double>& sweep) {
  Plot plot{.title = "A longer key: its weight rises or falls with the sign of q·k",
            .caption = "k̂ = αk. Lines: predicted; dots: measured.",
            .x = Axis{.title = "α"},
            .y = Axis{.title = "weight, relative to α = 1", .log = true}};
  const std::vector<double> weights = r.measured_of("weight of v_a");  // the sweep of key 0, then that of key 1
  for (const int64_t a : {int64_t{0}, int64_t{1}}) {
    const int color = static_cast<int>(a);
    const double before = change_key(lookup, a, row(lookup.keys, a) * 0.0).weight;
    const double score = lookup.beta * dot(lookup.q, row(lookup.keys, a));
    plot.series.push_back(curve(a == 0 ? "q·k > 0" : "q·k < 0", {1, alpha}, color, [&](double x) {
      const double grown = std::exp((x - 1) * score);
      return grown / (1 - before + before * grown);
    }));
    std::vector<double> y;
    for (size_t i = 0; i < sweep.size(); ++i) y.push_back(weights[static_cast<size_t>(a) * sweep.size() + i] / before);
    plot.series.push_back(dots("", sweep, y, color));
  }
  plot.guides.push_back({.at = 1, .label = "unchanged"});
  r.pictures.push_back(plot);
}

}  // namespace

Settings elongated_key_settings() {
  Settings s;
  s.integer("keys", 10, "number of (key, value) pairs", 2, 512)
      .integer("dim", 16, "dimensions of keys and values", 1, 1024)
      .number("beta", 0.25, "inverse temperature of the softmax", 0.001, 10)
      .number("alpha", 2, "largest factor by which the key is made longer", 1.0001, 10)
      .integer("halvings", 5, "number of halvings of α − 1", 1, 12)
      .integer("seed", 1, "of the keys, values and query");
  return s;
}

Result run_elongated_key(const Settings& set) {
  const int64_t m = set.get_integer("keys"), d = set.get_integer("dim");
  const double beta = set.get_number("beta");
  Rng rng(static_cast<uint64_t>(set.get_integer("seed")));
  KeyLookup lookup{gaussian(1, d, rng), gaussian(m, d, rng), gaussian(m, d, rng), beta};
  // Key 0 along the query, key 1 against it, whatever was drawn.
  for (int64_t i = 0; i < 2; ++i) {
    const double sign = (dot(lookup.q, row(lookup.keys, i)) > 0) == (i == 0) ? 1 : -1;
    for (int64_t c = 0; c < d; ++c) lookup.keys.f64()[i * d + c] *= sign;
  }

  Result r;
  r.claim =
      "Making a key longer, k̂ = αk, α > 1, raises its weight when q·k > 0 and lowers it when q·k < 0; the output "
      "moves towards or away from its value accordingly.";
  r.formula =
      "ε = (α − 1)k_{a},  δ = β(α − 1) q·k_{a}:  α_{a}′ = α_{a} e^{δ} / (1 + α_{a}(e^{δ} − 1))\n"
      "H′ − H = α_{a}(e^{δ} − 1) / (1 + α_{a}(e^{δ} − 1)) (v_{a} − H) ≈ δ α_{a} (v_{a} − H)";
  const int64_t halvings = set.get_integer("halvings");
  std::vector<double> sweep;
  for (const int64_t a : {int64_t{0}, int64_t{1}}) {
    const std::string which = a == 0 ? "q·k > 0, α" : "q·k < 0, α";
    for (int64_t i = halvings; i >= 0; --i) {
      const double longer = (set.get_number("alpha") - 1) * std::pow(0.5, double(i));
      if (a == 0) sweep.push_back(1 + longer);
      const KeyChange c = change_key(lookup, a, row(lookup.keys, a) * longer);
      const std::string point = at(which.c_str(), 1 + longer);
      const double grown = c.weight * std::exp(c.delta);
      r.exact(point, "weight of v_a", grown / (1 - c.weight + grown), c.new_weight);
      compare_change(r, point, c);
    }
  }
  const KeyChange up = change_key(lookup, 0, row(lookup.keys, 0)), down = change_key(lookup, 1, row(lookup.keys, 1));
  r.exact("α = 2", "sign of the weight's change, q·k > 0", 1, up.new_weight > up.weight ? 1 : -1);
  r.exact("α = 2", "sign of the weight's change, q·k < 0", -1, down.new_weight < down.weight ? -1 : 1);
  draw(r, lookup, set.get_number("alpha"), sweep);
  r.note("The length of a key acts as a separate temperature: it multiplies that key's score, whatever its sign.");
  return r;
}

}  // namespace qkv::lab
