// Experiment: a query t(k_a + k_b) averages the two values v_a and v_b.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "qkv/lab/experiments.h"
#include "qkv/lab/vectors.h"
#include "qkv/ops/ops.h"

namespace qkv::lab {
namespace {

// The weight of each of the two keys among m.
double pair_weight(double t, double beta, int64_t m) {
  return 1 / (2 + static_cast<double>(m - 2) * std::exp(-beta * t));
}

void draw(Result& r, double beta, int64_t m, const std::vector<double>& sweep) {
  const Range range{0, std::max(sweep.back(), 1e-6)};
  Plot plot{
      .title = "Averaging two values: who gets the weight",
      .caption = "q = t(k_a + k_b) over " + std::to_string(m) + " orthonormal keys. Lines: predicted; dots: measured.",
      .x = Axis{.title = "t"},
      .y = Axis{.title = "weight", .low = 0.0},
      .series = {
          curve("v_a, and the same for v_b", range, 0, [&](double t) { return pair_weight(t, beta, m); }),
          dots("", sweep, r.measured_of("weight of v_a"), 0),
          curve("all other values together", range, 1, [&](double t) { return 1 - 2 * pair_weight(t, beta, m); }),
          dots("", sweep, r.measured_of("weight of all others"), 1)}};
  if (range.high > 1) plot.guides.push_back({.at = 1, .label = "t = 1: not enough", .vertical = true});
  r.pictures.push_back(plot);
}

}  // namespace

Settings average_settings() {
  Settings s;
  s.integer("keys", 10, "number of (key, value) pairs", 3, 512)
      .integer("dim", 16, "dimensions of keys and values", 1, 1024)
      .number("t", 20, "length of the query along each of the two keys; the sweep runs from 0 to it", 0, 100)
      .number("beta", 1, "inverse temperature of the softmax", 0.01, 10)
      .integer("seed", 1, "of the keys and values");
  return s;
}

Result run_average(const Settings& set) {
  const int64_t m = set.get_integer("keys"), d = set.get_integer("dim"), a = 0, b = m / 2;
  const double t_max = set.get_number("t"), beta = set.get_number("beta");
  check_orthogonal(m, d, "orthonormal keys");
  Rng rng(static_cast<uint64_t>(set.get_integer("seed")));
  const Tensor keys = orthonormal(m, d, rng);                                           // [m, d]
  const Tensor values = gaussian(m, d, rng) * (1 / std::sqrt(static_cast<double>(d)));  // [m, d]
  const Tensor wanted = (row(values, a) + row(values, b)) * 0.5;                        // [1, d]
  const Tensor others = (sum(values, 0, true) - 2.0 * wanted) * (1.0 / static_cast<double>(m - 2));

  Result r;
  r.claim = "A query along two keys at once, q = t(k_a + k_b), averages their values: c → ½(v_a + v_b) as t grows.";
  r.formula =
      "orthonormal keys, q = t(k_{a} + k_{b}):  α_{a} = α_{b} = e^{βt} / (2e^{βt} + m − 2)\n"
      "c − ½(v_{a} + v_{b}) = (1 − 2α_{a}) (mean of the other values − ½(v_{a} + v_{b})) → 0";
  std::vector<double> sweep;
  for (const double share : {0.0, 0.05, 0.1, 0.25, 0.5, 1.0}) {
    const double t = share * t_max, weight = pair_weight(t, beta, m);
    const Tensor q = batch_of_one((row(keys, a) + row(keys, b)) * t);                 // [1, 1, d]
    const Tensor k = batch_of_one(keys), v = batch_of_one(values);                    // [1, m, d]
    const Tensor c = unbatched(attention(q, k, v, with_scale(beta)));                 // [1, d]
    const Tensor weights = unbatched(attention_score_array(q, k, with_scale(beta)));  // [1, m]
    const double others_weight = sum(weights).item() - weights.at({0, a}) - weights.at({0, b});
    r.exact(at("t", t), "weight of v_a", weight, weights.at({0, a}));
    r.exact(at("t", t), "weight of v_b", weight, weights.at({0, b}));
    r.exact(at("t", t), "weight of all others", 1 - 2 * weight, others_weight);
    r.exact(at("t", t), "distance of c from ½(v_a + v_b)", (1 - 2 * weight) * distance(others, wanted),
            distance(c, wanted));
    sweep.push_back(t);
  }
  draw(r, beta, m, sweep);
  char text[300];
  std::snprintf(text, sizeof text,
                "Common wrong answer: q = k_a + k_b. With t = 1 the other %lld keys together still take %.1f%% "
                "of the weight; the answer needs t ≫ 0.",
                static_cast<long long>(m - 2), 100 * (1 - 2 * pair_weight(1, beta, m)));
  r.note(text);
  r.note("A fully connected layer does it with two blocks of ½·I at two fixed places, m·d² = " +
         std::to_string(m * d * d) + " weights in all; attention needs none and follows the keys wherever they are.");
  return r;
}

}  // namespace qkv::lab
