// Experiment: one head that averages two values swings between them when a key's length is noisy.
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
      "One head with q = t(μ_a + μ_b) averages v_a and v_b only in the mean: when the length of a key is noisy, its "
      "output swings between v_a and v_b from draw to draw.";
  r.formula =
      "k_{i} = λ_{i} μ_{i}, λ_{i} ~ N(1, s^{2}):  c = S v_{a} + (1 − S) v_{b}, S = sigmoid(t(λ_{a} − λ_{b})), other keys "
      "vanishing\n"
      "covariance εI alone:  Var S ≈ t^{2}ε/4 → 0";

  NoisyLookup isotropic = base;
  isotropic.variance_a = 0;
  isotropic.epsilon = epsilon;
  compare(r, "covariance εI", isotropic, measured_moments(isotropic, samples, seed));
  for (const double share : {0.02, 0.1, 0.4, 1.0}) {
    NoisyLookup one = base;
    one.variance_a = share * variance;
    compare(r, at("k_a noisy, s²", one.variance_a), one, measured_moments(one, samples, seed));
  }
  NoisyLookup every = base;
  every.variance_others = variance;
  compare(r, at("all keys noisy, s²", variance), every, measured_moments(every, samples, seed));
  r.note("The mean is ½(v_a + v_b), yet hardly any single output is near it: with t large the sigmoid is almost always 0 "
         "or 1. `qkv lab two-heads` shows the cure.");
  r.note("The values are unit vectors, so the output is the vector of weights and its variance is the sum over them.");
  return r;
}

}  // namespace qkv::lab
