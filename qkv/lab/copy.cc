// Experiment: a query t·k_j copies the value v_j, the better the larger t.
#include <cmath>

#include "qkv/lab/experiments.h"
#include "qkv/lab/vectors.h"
#include "qkv/ops/ops.h"

namespace qkv::lab {
namespace {

// A fully connected layer has one weight matrix a position: zeros everywhere but the identity at position j.
Tensor fixed_copy_layer(const Tensor& values, int64_t j) {
  const int64_t m = values.dim(0), d = values.dim(1);
  Tensor weight = Tensor::zeros({d, m * d}, DType::f64);  // [d, m d]
  for (int64_t c = 0; c < d; ++c) weight.f64()[c * m * d + j * d + c] = 1;
  return linear(reshape(values, {1, m * d}), weight);  // [1, d]
}

}  // namespace

Settings copy_settings() {
  Settings s;
  s.integer("keys", 10, "number of (key, value) pairs", 2, 512)
      .integer("dim", 16, "dimensions of keys and values", 1, 1024)
      .number("t", 20, "length of the query; the sweep runs from 0 to it", 0, 100)
      .number("beta", 1, "inverse temperature of the softmax", 0, 100)
      .integer("seed", 1, "of the keys and values");
  return s;
}

Result run_copy(const Settings& set) {
  const int64_t m = set.get_integer("keys"), d = set.get_integer("dim"), j = m / 3;
  const double t_max = set.get_number("t"), beta = set.get_number("beta");
  check_orthogonal(m, d, "orthonormal keys");
  Rng rng(static_cast<uint64_t>(set.get_integer("seed")));
  const Tensor keys = orthonormal(m, d, rng);                          // [m, d]
  const Tensor values = gaussian(m, d, rng) * (1 / std::sqrt(double(d)));  // [m, d]
  const Tensor wanted = row(values, j);                                // [1, d]
  const Tensor others = (sum(values, 0, true) - wanted) * (1.0 / double(m - 1));

  Result r;
  r.claim = "A query that points along one key, q = t·k_j, copies that key's value: the larger t, the truer the copy.";
  r.formula =
      "orthonormal keys, q = t k_{j}:  α_{j} = e^{βt} / (e^{βt} + m − 1)\n"
      "c − v_{j} = (1 − α_{j}) (mean of the other values − v_{j}) → 0";
  for (const double share : {0.0, 0.05, 0.1, 0.25, 0.5, 1.0}) {
    const double t = share * t_max;
    const Tensor q = batch_of_one(row(keys, j) * t);  // [1, 1, d]
    const Tensor k = batch_of_one(keys), v = batch_of_one(values);
    const Tensor c = unbatched(attention(q, k, v, with_scale(beta)));                         // [1, d]
    const Tensor weights = unbatched(attention_score_array(q, k, with_scale(beta)));          // [1, m]
    const double weight = 1 / (1 + double(m - 1) * std::exp(-beta * t));
    r.exact(at("t", t), "weight of v_j", weight, weights.at({0, j}));
    r.exact(at("t", t), "distance of c from v_j", (1 - weight) * distance(others, wanted), distance(c, wanted));
  }

  // The same pairs in another order: attention looks by content, a fully connected layer by place.
  std::vector<int64_t> moved(static_cast<size_t>(m));
  for (int64_t i = 0; i < m; ++i) moved[static_cast<size_t>(i)] = (i + 1) % m;
  const Tensor keys2 = reordered(keys, moved), values2 = reordered(values, moved);
  const double left = (1 - 1 / (1 + double(m - 1) * std::exp(-beta * t_max))) * distance(others, wanted);
  const Tensor c2 = unbatched(attention(batch_of_one(row(keys, j) * t_max), batch_of_one(keys2), batch_of_one(values2),
                                        with_scale(beta)));
  r.exact("pairs moved", "attention: distance from v_j", left, distance(c2, wanted));
  r.exact("pairs in place", "fully connected: distance from v_j", 0, distance(fixed_copy_layer(values, j), wanted));
  r.exact("pairs moved", "fully connected: distance from v_j", distance(row(values, (j + 1) % m), wanted),
          distance(fixed_copy_layer(values2, j), wanted));
  r.note("The weight passes ½ at t = ln(m − 1)/β = " + std::to_string(std::log(double(m - 1)) / beta).substr(0, 5) +
         "; from there on 1 − α_j shrinks as e^{−βt}.");
  r.note("A fully connected layer from all m values needs m·d² = " + std::to_string(m * d * d) +
         " weights, zero but for one identity block, to copy one fixed place; when the pairs change places it copies "
         "the wrong value, while attention finds the key where it went.");
  return r;
}

}  // namespace qkv::lab
