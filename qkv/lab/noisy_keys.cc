// Experiment: one head that averages two values swings between them when a key's length is noisy.
#include <algorithm>
#include <cmath>

#include "qkv/lab/experiments.h"
#include "qkv/lab/noisy_lookup.h"
#include "qkv/lab/vectors.h"

namespace qkv::lab {
namespace {

void compare(Result& r, const std::string& at, const NoisyLookup& n, const MeasuredMoments& m) {
  const Moments p = predicted_moments(n).all;
  r.sampled(at, "mean weight of v_a", p.mean_a, m.value.all.mean_a, m.standard_error.all.mean_a);
  r.sampled(at, "mean weight of v_b", p.mean_b, m.value.all.mean_b, m.standard_error.all.mean_b);
  r.sampled(at, "variance of the output", p.variance, m.value.all.variance, m.standard_error.all.variance);
}

// Share of draws whose weight of v_a falls into each of twenty bins.
std::vector<double> histogram(const std::vector<double>& weights) {
  std::vector<double> share(20);
  for (const double w : weights) {
    share[std::min<size_t>(19, static_cast<size_t>(w * 20))] += 1 / static_cast<double>(weights.size());
  }
  return share;
}

// The same for S = sigmoid(t(λ − 1)), λ ~ N(1, s²): S < x exactly when t(λ − 1) < ln(x/(1 − x)).
std::vector<double> predicted_histogram(double t, double variance) {
  const auto below = [&](double x) {
    if (x <= 0) return 0.0;
    if (x >= 1) return 1.0;
    return 0.5 * std::erfc(-std::log(x / (1 - x)) / (t * std::sqrt(2 * variance)));
  };
  std::vector<double> share;
  for (int i = 0; i < 20; ++i) share.push_back(below((i + 1) / 20.0) - below(i / 20.0));
  return share;
}

void draw_histogram(Result& r, const NoisyLookup& n, const std::vector<double>& weights) {
  if (n.t * n.variance_a <= 0) return;
  std::vector<double> x, reach;
  for (int i = 0; i < 20; ++i) x.push_back((i + 0.5) / 20);
  const std::vector<double> found = histogram(weights), expected = predicted_histogram(n.t, n.variance_a);
  for (const double p : expected) reach.push_back(3 * std::sqrt(p * (1 - p) / static_cast<double>(weights.size())));
  Series line{.name = "predicted", .x = x, .y = expected, .color = 0};
  r.pictures.push_back(Plot{.title = "One head, length of k_a noisy: either v_a or v_b, seldom between",
                            .caption = at("t", n.t) + at(", s²", n.variance_a) +
                                       ". Dots: share of the draws in each of 20 bins, with three standard errors.",
                            .x = Axis{.title = "weight of v_a in one draw", .low = 0.0, .high = 1.0},
                            .y = Axis{.title = "share of draws", .low = 0.0},
                            .series = {line, dots("measured", x, found, 1, reach)}});
}

void draw_variances(Result& r, const NoisyLookup& base, const std::vector<double>& variances) {
  Plot plot{.title = "Variance of the output against the variance of the key's length",
            .caption = "Line: predicted by quadrature; dots: measured, with three standard errors.",
            .x = Axis{.title = "variance s² of the length of k_a"},
            .y = Axis{.title = "variance of the output", .low = 0.0}};
  Series line{.name = "only k_a noisy", .color = 0};
  for (int i = 0; i <= 40; ++i) {
    NoisyLookup n = base;
    n.variance_a = base.variance_a * i / 40.0;
    line.x.push_back(n.variance_a);
    line.y.push_back(predicted_moments(n).all.variance);
  }
  std::vector<double> y = r.measured_of("variance of the output"), reach = r.reach_of("variance of the output");
  y = {y.begin() + 1, y.end() - 1};  // without the first and the last case
  reach = {reach.begin() + 1, reach.end() - 1};
  plot.series = {line, dots("measured", variances, y, 1, reach)};
  r.pictures.push_back(plot);
}

}  // namespace

Settings noisy_keys_settings() {
  return noisy_lookup_settings().number("epsilon", 1e-6, "variance of the noise in every direction (covariance εI)", 0,
                                        0.01);
}

Result run_noisy_keys(const Settings& set) {
  const NoisyLookup base = noisy_lookup(set);
  const int64_t samples = set.get_integer("samples");
  const auto seed = static_cast<uint64_t>(set.get_integer("seed"));
  const double variance = base.variance_a, epsilon = set.get_number("epsilon");

  Result r;
  r.claim =
      "One head with q = t(μ_a + μ_b) averages v_a and v_b only in the mean: when the length of a key is noisy, "
      "its output swings between v_a and v_b from draw to draw.";
  r.formula =
      "k_{i} = λ_{i} μ_{i}, λ_{i} ~ N(1, s^{2}):  c = S v_{a} + (1 − S) v_{b}, S = sigmoid(t(λ_{a} − λ_{b})), "
      "other keys vanishing\n"
      "covariance εI alone:  Var S ≈ t^{2}ε/4 → 0";

  NoisyLookup isotropic = base;
  isotropic.variance_a = 0;
  isotropic.epsilon = epsilon;
  compare(r, "covariance εI", isotropic, measured_moments(isotropic, samples, seed));
  std::vector<double> variances, draws;
  for (const double share : {0.02, 0.1, 0.4, 1.0}) {
    NoisyLookup one = base;
    one.variance_a = share * variance;
    const MeasuredMoments measured = measured_moments(one, samples, seed);
    compare(r, at("k_a noisy, s²", one.variance_a), one, measured);
    variances.push_back(one.variance_a);
    draws = measured.weight_of_a;
  }
  NoisyLookup every = base;
  every.variance_others = variance;
  compare(r, at("all keys noisy, s²", variance), every, measured_moments(every, samples, seed));
  draw_histogram(r, base, draws);
  draw_variances(r, base, variances);
  r.note(
      "The mean is ½(v_a + v_b), yet hardly any single output is near it: with t large the sigmoid is almost "
      "always 0 or 1. `qkv lab two-heads` shows the cure.");
  r.note("The values are unit vectors, so the output is the vector of weights and its variance is the sum over them.");
  return r;
}

}  // namespace qkv::lab
