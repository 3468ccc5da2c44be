// Experiment: a query t·k_j copies the value v_j, the better the larger t.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "qkv/lab/experiments.h"
#include "qkv/lab/vectors.h"
#include "qkv/ops/ops.h"

namespace qkv::lab {
namespace {

struct Copy {
  int64_t keys_count = 0, j = 0;
  double beta = 1;
  Tensor keys, values;    // [m, d]
  Tensor wanted, others;  // [1, d]: v_j, and the mean of the other values

  double weight(double t) const { return 1 / (1 + static_cast<double>(keys_count - 1) * std::exp(-beta * t)); }
  double error(double t) const { return (1 - weight(t)) * distance(others, wanted); }
};

Copy make_copy(const Settings& set) {
  Copy c;
  const int64_t m = set.get_integer("keys"), d = set.get_integer("dim");
  check_orthogonal(m, d, "orthonormal keys");
  Rng rng(static_cast<uint64_t>(set.get_integer("seed")));
  c.keys_count = m;
  c.j = m / 3;
  c.beta = set.get_number("beta");
  c.keys = orthonormal(m, d, rng);
  c.values = gaussian(m, d, rng) * (1 / std::sqrt(static_cast<double>(d)));
  c.wanted = row(c.values, c.j);
  c.others = (sum(c.values, 0, true) - c.wanted) * (1.0 / static_cast<double>(m - 1));
  return c;
}

// A fully connected layer has one weight matrix per position: zeros everywhere but the identity at position j.
Tensor fixed_copy_layer(const Tensor& values, int64_t j) {
  const int64_t m = values.dim(0), d = values.dim(1);
  Tensor weight = Tensor::zeros({d, m * d}, DType::f64);  // [d, m d]
  for (int64_t c = 0; c < d; ++c) weight.f64()[c * m * d + j * d + c] = 1;
  return linear(reshape(values, {1, m * d}), weight);  // [1, d]
}

// The same pairs in another order: attention looks by content, a fully connected layer by place.
void compare_with_fixed_layer(Result& r, const Copy& c, double t) {
  std::vector<int64_t> moved(static_cast<size_t>(c.keys_count));
  for (int64_t i = 0; i < c.keys_count; ++i) moved[static_cast<size_t>(i)] = (i + 1) % c.keys_count;
  const Tensor keys = reordered(c.keys, moved), values = reordered(c.values, moved);
  const Tensor q = batch_of_one(row(c.keys, c.j) * t);  // [1, 1, d]
  const Tensor found = unbatched(attention(q, batch_of_one(keys), batch_of_one(values), with_scale(c.beta)));
  r.exact("pairs moved", "attention: distance from v_j", c.error(t), distance(found, c.wanted));
  r.exact("pairs in place", "fully connected: distance from v_j", 0,
          distance(fixed_copy_layer(c.values, c.j), c.wanted));
  r.exact("pairs moved", "fully connected: distance from v_j",
          distance(row(c.values, (c.j + 1) % c.keys_count), c.wanted),
          distance(fixed_copy_layer(values, c.j), c.wanted));
}

void draw(Result& r, const Copy& c, const std::vector<double>& sweep, const std::vector<Tensor>& weights) {
  const Range range{0, std::max(sweep.back(), 1e-6)};
  Plot plot{.title = "Copying: the weight of v_j as the query grows",
            .caption = "q = t·k_j over " + std::to_string(c.keys_count) +
                       " orthonormal keys. Lines: predicted; dots: measured.",
            .x = Axis{.title = "t"},
            .y = Axis{.low = 0.0},
            .series = {curve("weight of v_j", range, 0, [&](double t) { return c.weight(t); }),
                       dots("", sweep, r.measured_of("weight of v_j"), 0),
                       curve("distance of c from v_j", range, 1, [&](double t) { return c.error(t); }),
                       dots("", sweep, r.measured_of("distance of c from v_j"), 1)}};
  const double half = std::log(static_cast<double>(c.keys_count - 1)) / c.beta;
  if (half < range.high) plot.guides.push_back({.at = half, .label = "weight ½", .vertical = true});
  r.pictures.push_back(plot);
  HeatMap map = weight_map("weights", concat(weights, 0));  // [6, m]
  map.row_title = "query";
  for (const double t : sweep) map.row_labels.push_back(at("t", t));
  r.pictures.push_back(Maps{"Copying: the weights of all keys",
                            {map},
                            1,
                            "Each row is one query, t·k_" + std::to_string(c.j) + "; from top to bottom t grows."});
}

}  // namespace

Settings copy_settings() {
  Settings s;
  s.integer("keys", 10, "number of (key, value) pairs", 2, 512)
      .integer("dim", 16, "dimensions of keys and values", 1, 1024)
      .number("t", 20, "length of the query; the sweep runs from 0 to it", 0, 100)
      .number("beta", 1, "inverse temperature of the softmax", 0.01, 10)
      .integer("seed", 1, "of the keys and values");
  return s;
}

Result run_copy(const Settings& set) {
  const Copy c = make_copy(set);
  const double t_max = set.get_number("t");
  const Tensor k = batch_of_one(c.keys), v = batch_of_one(c.values);  // [1, m, d]
  Result r;
  r.claim = "A query that points along one key, q = t·k_j, copies that key's value: the larger t, the truer the copy.";
  r.formula =
      "orthonormal keys, q = t k_{j}:  α_{j} = e^{βt} / (e^{βt} + m − 1)\n"
      "c − v_{j} = (1 − α_{j}) (mean of the other values − v_{j}) → 0";
  std::vector<double> sweep;
  std::vector<Tensor> maps;
  for (const double share : {0.0, 0.05, 0.1, 0.25, 0.5, 1.0}) {
    const double t = share * t_max;
    const Tensor q = batch_of_one(row(c.keys, c.j) * t);                                // [1, 1, d]
    const Tensor found = unbatched(attention(q, k, v, with_scale(c.beta)));             // [1, d]
    const Tensor weights = unbatched(attention_score_array(q, k, with_scale(c.beta)));  // [1, m]
    r.exact(at("t", t), "weight of v_j", c.weight(t), weights.at({0, c.j}));
    r.exact(at("t", t), "distance of c from v_j", c.error(t), distance(found, c.wanted));
    sweep.push_back(t);
    maps.push_back(weights);
  }
  compare_with_fixed_layer(r, c, t_max);
  draw(r, c, sweep, maps);
  const int64_t m = c.keys_count, d = c.keys.dim(1);
  char text[300];
  std::snprintf(text, sizeof text,
                "The weight passes ½ at t = ln(m − 1)/β = %.2f; from there on 1 − α_j shrinks as e^(−βt).",
                std::log(static_cast<double>(m - 1)) / c.beta);
  r.note(text);
  r.note("A fully connected layer from all m values needs m·d² = " + std::to_string(m * d * d) +
         " weights, zero except for one identity block, to copy one fixed place; when the pairs change places it "
         "copies the wrong value, while attention finds the key where it went.");
  return r;
}

}  // namespace qkv::lab
