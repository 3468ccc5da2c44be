// A look-up among keys of random length: quadrature beside sampling.
#include "qkv/lab/noisy_lookup.h"

#include <algorithm>
#include <cmath>

#include "qkv/base/budget.h"
#include "qkv/base/error.h"
#include "qkv/lab/gaussian.h"
#include "qkv/lab/vectors.h"
#include "qkv/ops/ops.h"

namespace qkv::lab {
namespace {

struct Weights {
  double a = 0, b = 0, other = 0;  // other: each of the m - 2
};

// Mean over the heads for given lengths; every other key scores 0 and counts `others` times.
Weights mean_weights(const NoisyLookup& n, double length_a, double length_b, double others) {
  Weights mean;
  for (const auto& [to_a, to_b] : n.heads) {
    const double za = n.t * to_a * length_a, zb = n.t * to_b * length_b, top = std::max({za, zb, 0.0});
    const double ea = std::exp(za - top), eb = std::exp(zb - top), eo = std::exp(-top);
    const double scale = 1 / (static_cast<double>(n.heads.size()) * (ea + eb + others * eo));
    mean.a += ea * scale;
    mean.b += eb * scale;
    mean.other += eo * scale * others / static_cast<double>(n.keys - 2);
  }
  return mean;
}

// Weighted first and second moments of (a, b, other).
struct Sums {
  double mass = 0, a = 0, b = 0, other = 0, squares = 0;
  void add(const Weights& w, double mass_here, double others) {
    mass += mass_here;
    a += mass_here * w.a;
    b += mass_here * w.b;
    other += mass_here * w.other;
    squares += mass_here * (w.a * w.a + w.b * w.b + others * w.other * w.other);
  }
  Moments moments(double others) const {
    if (mass <= 0) return {0, 0, 0, 0};
    const double ma = a / mass, mb = b / mass, mo = other / mass;
    return {mass, ma, mb, std::max(0.0, squares / mass - ma * ma - mb * mb - others * mo * mo)};
  }
};

}  // namespace

SplitMoments predicted_moments(const NoisyLookup& n) {
  const double others = static_cast<double>(n.keys - 2);
  // q·n_i has variance |q|²ε = 2t²ε: it widens λ_a and λ_b, and lifts the mean of e^{score} of the other keys.
  const double spread = 2 * n.epsilon, lifted = others * std::exp(n.t * n.t * n.epsilon);
  const double sd_a = std::sqrt(n.variance_a + spread), sd_b = std::sqrt(n.variance_others + spread);
  const auto panels = [&](double sd) { return std::clamp(20 + static_cast<int>(1.5 * n.t * sd), 20, 160); };
  const auto nodes_a = normal_nodes(1, sd_a, panels(sd_a)), nodes_b = normal_nodes(1, sd_b, panels(sd_b));
  Sums all, positive, negative;
  for (const QuadratureNode& la : nodes_a) {
    for (const QuadratureNode& lb : nodes_b) {
      const Weights w = mean_weights(n, la.x, lb.x, lifted);
      const double mass = la.weight * lb.weight;
      all.add(w, mass, others);
      (la.x < 0 || lb.x < 0 ? negative : positive).add(w, mass, others);
    }
  }
  return {all.moments(others), positive.moments(others), negative.moments(others)};
}

namespace {

// Outputs [draws, m] of one block of draws, and whether each met a negative length.
void draw_block(const NoisyLookup& n, const Tensor& mu, const Tensor& q, int64_t draws, Rng& rng,
                std::vector<double>& outputs, std::vector<char>& negative) {
  const int64_t m = n.keys, d = n.dim, H = q.dim(1);
  Tensor k = Tensor::empty({draws, 1, m, d});  // [n, 1, m, d]
  const double sd_a = std::sqrt(n.variance_a), sd_others = std::sqrt(n.variance_others), wobble = std::sqrt(n.epsilon);
  for (int64_t s = 0; s < draws; ++s) {
    check_budget();
    bool any = false;
    for (int64_t i = 0; i < m; ++i) {
      const double length = 1 + (i == 0 ? sd_a : sd_others) * rng.normal();
      any = any || (i < 2 && length < 0);
      for (int64_t c = 0; c < d; ++c) {
        const double noise = wobble > 0 ? wobble * rng.normal() : 0;
        k.f32()[(s * m + i) * d + c] = static_cast<float>(length * mu.f64()[i * d + c] + noise);
      }
    }
    negative.push_back(any ? 1 : 0);
  }
  Tensor one_hot = Tensor::zeros({1, 1, m, m});
  for (int64_t i = 0; i < m; ++i) one_hot.f32()[i * m + i] = 1;
  // The heads share keys and values (grouped queries): q [n, H, 1, d], k [n, 1, m, d], v [n, 1, m, m].
  const Tensor c = attention(expand(q, {draws, H, 1, d}), k, expand(one_hot, {draws, 1, m, m}), with_scale(1));
  const std::vector<double> block = mean(c, 1).to_doubles();  // [n, 1, m]
  outputs.insert(outputs.end(), block.begin(), block.end());
}

struct Column {
  double sum = 0, squares = 0;
};

// Moments and their standard errors over the draws with keep[s] == wanted (2: all).
void summarise(const std::vector<double>& out, const std::vector<char>& flags, char wanted, int64_t m, Moments& value,
               Moments& error) {
  const auto taken = [&](size_t s) { return wanted == 2 || flags[s] == wanted; };
  const auto width = static_cast<size_t>(m);
  std::vector<Column> columns(width);
  double n = 0;
  for (size_t s = 0; s < flags.size(); ++s) {
    if (!taken(s)) continue;
    n += 1;
    for (size_t j = 0; j < width; ++j) {
      columns[j].sum += out[s * width + j];
      columns[j].squares += out[s * width + j] * out[s * width + j];
    }
  }
  const double total = static_cast<double>(flags.size());
  value = {n / total, 0, 0, 0};
  error = {std::sqrt(value.share * (1 - value.share) / total), 0, 0, 0};
  if (n < 2) return;
  const auto mean_error = [&](const Column& c) {
    return std::sqrt(std::max(0.0, c.squares / n - c.sum / n * c.sum / n) / (n - 1));
  };
  value.mean_a = columns[0].sum / n;
  value.mean_b = columns[1].sum / n;
  error.mean_a = mean_error(columns[0]);
  error.mean_b = mean_error(columns[1]);
  Column spread;  // of the squared distance from the mean
  for (size_t s = 0; s < flags.size(); ++s) {
    if (!taken(s)) continue;
    double squares = 0;
    for (size_t j = 0; j < width; ++j) {
      const double off = out[s * width + j] - columns[j].sum / n;
      squares += off * off;
    }
    spread.sum += squares;
    spread.squares += squares * squares;
  }
  value.variance = spread.sum / (n - 1);
  error.variance = mean_error(spread);
}

}  // namespace

MeasuredMoments measured_moments(const NoisyLookup& n, int64_t samples, uint64_t seed) {
  Rng rng(seed);
  const Tensor mu = orthonormal(n.keys, n.dim, rng);  // [m, d]
  std::vector<Tensor> queries;
  for (const auto& [to_a, to_b] : n.heads) queries.push_back(row(mu, 0) * (n.t * to_a) + row(mu, 1) * (n.t * to_b));
  const auto H = static_cast<int64_t>(n.heads.size());
  const Tensor q = reshape(concat(queries, 0).to(DType::f32), {1, H, 1, n.dim});  // [1, H, 1, d]

  std::vector<double> outputs;
  outputs.reserve(static_cast<size_t>(samples * n.keys));
  std::vector<char> negative;
  const int64_t block = std::max<int64_t>(1, (int64_t{1} << 21) / (n.keys * std::max(n.dim, n.keys)));
  for (int64_t done = 0; done < samples; done += block) {
    draw_block(n, mu, q, std::min(block, samples - done), rng, outputs, negative);
  }
  MeasuredMoments r;
  summarise(outputs, negative, 2, n.keys, r.value.all, r.standard_error.all);
  summarise(outputs, negative, 0, n.keys, r.value.positive, r.standard_error.positive);
  summarise(outputs, negative, 1, n.keys, r.value.negative, r.standard_error.negative);
  r.negative_draws = std::count(negative.begin(), negative.end(), 1);
  for (size_t s = 0; s < negative.size(); ++s) r.weight_of_a.push_back(outputs[s * static_cast<size_t>(n.keys)]);
  return r;
}

Settings noisy_lookup_settings() {
  Settings s;
  s.integer("keys", 10, "number of keys", 3, 256)
      .integer("dim", 16, "dimensions of the keys", 1, 1024)
      .number("t", 20, "length of the query along each key it asks for", 0, 100)
      .number("variance", 0.5, "variance of the lengths of noisy keys, N(1, variance)", 0, 10)
      .number("sigma", 0, "their standard deviation, in place of --variance; 0: use --variance", 0, 4)
      .integer("samples", 4096, "draws of all keys", 100, 1000000)
      .integer("seed", 1, "of the draws");
  return s;
}

NoisyLookup noisy_lookup(const Settings& set) {
  NoisyLookup n;
  n.keys = set.get_integer("keys");
  n.dim = set.get_integer("dim");
  n.t = set.get_number("t");
  const double sigma = set.get_number("sigma");
  n.variance_a = sigma > 0 ? sigma * sigma : set.get_number("variance");
  check_orthogonal(n.keys, n.dim, "orthonormal key directions");
  // Every draw's weights are kept, since their variance needs the mean first.
  constexpr int64_t kMostWeights = 16'000'000;
  const int64_t samples = set.get_integer("samples");
  if (samples * n.keys > kMostWeights) {
    throw ConfigError("--samples " + std::to_string(samples) + " of --keys " + std::to_string(n.keys) + ": " +
                      std::to_string(samples * n.keys) + " weights are too many to keep; at most " +
                      std::to_string(kMostWeights));
  }
  return n;
}

}  // namespace qkv::lab
