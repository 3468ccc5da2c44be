// What happens to the output when one key changes.
#include "qkv/lab/key_change.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "qkv/base/budget.h"
#include "qkv/lab/gaussian.h"
#include "qkv/lab/vectors.h"
#include "qkv/ops/ops.h"

namespace qkv::lab {
namespace {

Tensor batched(const Tensor& x) { return reshape(x, {1, x.dim(0), x.dim(1)}); }

// H' of `draws` look-ups in which key a is moved at random → [draws, d].
Tensor drawn_outputs(const KeyLookup& lookup, int64_t a, double sigma, int64_t draws, Rng& rng) {
  const int64_t m = lookup.keys.dim(0), d = lookup.keys.dim(1);
  Tensor k = expand(batch_of_one(lookup.keys), {draws, m, d}).clone();  // [n, m, d]
  for (int64_t s = 0; s < draws; ++s) {
    check_budget();
    for (int64_t c = 0; c < d; ++c) k.f32()[(s * m + a) * d + c] += static_cast<float>(sigma * rng.normal());
  }
  const Tensor q = expand(batch_of_one(lookup.q), {draws, 1, d}),
               v = expand(batch_of_one(lookup.values), {draws, m, d});
  return reshape(attention(q, k, v, with_scale(lookup.beta)), {draws, d});
}

// First four moments of a sample.
struct Sample {
  std::vector<double> values;
  double mean() const { return std::accumulate(values.begin(), values.end(), 0.0) / double(values.size()); }
  double central(int power) const {
    const double middle = mean();
    double total = 0;
    for (const double x : values) total += std::pow(x - middle, power);
    return total / double(values.size());
  }
};

void predict(RandomKeyChange& r, double weight) {
  const double rest = std::max(1e-300, 1 - weight), s2 = r.spread * r.spread;
  double squares = 0;
  for (const QuadratureNode& node : normal_nodes(0, r.spread, 40)) {
    const double growth = weight * std::expm1(node.x), share = growth / (1 + growth);
    r.mean += node.weight * share;
    squares += node.weight * share * share;
  }
  r.variance = squares - r.mean * r.mean;
  r.second_order_mean = weight * (1 - 2 * weight) * s2 / 2;
  r.first_order_variance = weight * weight * s2;
  // Largest second, third and fourth derivatives of the sigmoid: 1/(6√3), 1/8 and less than 0.128.
  r.mean_bound = 0.128 / 8 * s2 * s2 / rest;
  const double slope = weight + s2 / (16 * rest), bend = 1 / (6 * std::sqrt(3.0) * rest);
  r.variance_bound = s2 * (slope * slope - weight * weight) + s2 * s2 * bend * bend / 2;
}

}  // namespace

KeyChange change_key(const KeyLookup& lookup, int64_t a, const Tensor& epsilon) {
  const ScoreRule rule = with_scale(lookup.beta);
  const Tensor q = batched(lookup.q), k = batched(lookup.keys), v = batched(lookup.values);  // [1, 1 or m, d]
  Tensor moved_keys = lookup.keys.clone();
  const int64_t d = moved_keys.dim(1);
  for (int64_t c = 0; c < d; ++c) moved_keys.f64()[a * d + c] += epsilon.at({0, c});
  const Tensor moved = batched(moved_keys);

  const Tensor before = unbatched(attention(q, k, v, rule)), after = unbatched(attention(q, moved, v, rule));
  KeyChange r;
  r.weight = unbatched(attention_score_array(q, k, rule)).at({0, a});
  r.new_weight = unbatched(attention_score_array(q, moved, rule)).at({0, a});
  r.delta = lookup.beta * dot(lookup.q, epsilon);
  const double growth = r.weight * std::expm1(r.delta);
  r.exact = growth / (1 + growth);
  r.first_order = r.weight * r.delta;
  r.bound = r.delta * r.delta / (12 * std::sqrt(3.0) * std::max(1e-300, 1 - r.weight));
  const Tensor towards = row(lookup.values, a) - before, change = after - before;  // [1, d]
  r.measured = dot(change, towards) / std::max(1e-300, dot(towards, towards));
  r.sideways = norm(change - towards * r.measured);
  return r;
}

RandomKeyChange change_key_randomly(const KeyLookup& lookup, int64_t a, double sigma, int64_t draws, Rng& rng) {
  constexpr int64_t kBlock = 1024;
  const Tensor none = Tensor::zeros({1, lookup.keys.dim(1)}, DType::f64);
  const double weight = change_key(lookup, a, none).weight;
  const Tensor before = unbatched(
      attention(batched(lookup.q), batched(lookup.keys), batched(lookup.values), with_scale(lookup.beta)));  // [1, d]
  const Tensor towards = row(lookup.values, a) - before;                                                     // [1, d]
  const double length2 = std::max(1e-300, dot(towards, towards));
  RandomKeyChange r;
  r.spread = lookup.beta * sigma * norm(lookup.q);
  predict(r, weight);
  Sample along;
  std::vector<Tensor> outputs;
  for (int64_t done = 0; done < draws; done += kBlock) {
    const Tensor out = drawn_outputs(lookup, a, sigma, std::min(kBlock, draws - done), rng).to(DType::f64);
    outputs.push_back(out - before);  // [n, d]
    for (const double x : matmul(outputs.back(), transpose(towards, 0, 1)).to_doubles()) {
      along.values.push_back(x / length2);
    }
  }
  const auto n = static_cast<double>(draws);
  const Tensor change = concat(outputs, 0), off = change - mean(change, 0, true);  // [draws, d]
  r.measured_mean = along.mean();
  r.measured_variance = along.central(2);
  r.mean_error = std::sqrt(r.measured_variance / n);
  r.variance_error = std::sqrt(std::max(0.0, along.central(4) - r.measured_variance * r.measured_variance) / n);
  r.measured_total = dot(off, off) / n / length2;
  return r;
}

void compare_change(Result& r, const std::string& at, const KeyChange& c) {
  r.exact(at, "change along v_a − H", c.exact, c.measured);
  // Rounding in f64 sets a floor under the square of the smallest steps.
  r.first_order(at, "first order β(q·ε)α_a", c.first_order, c.measured, c.bound + 1e-14);
}

}  // namespace qkv::lab
