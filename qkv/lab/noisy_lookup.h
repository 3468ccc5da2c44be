// A look-up among keys of random length, one head or several: its moments by quadrature and by drawing.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "qkv/base/settings.h"

namespace qkv::lab {

/// Keys k_i = λ_i μ_i + √ε n_i with orthonormal μ_i, λ_i ~ N(1, variance), n_i ~ N(0, I). The values are the unit
/// vectors, so that the output is the vector of weights. Head h asks q_h = t(heads[h][0]·μ_a + heads[h][1]·μ_b);
/// the output is the mean over the heads. a = 0, b = 1.
struct NoisyLookup {
  int64_t keys = 10, dim = 16;
  double t = 20;
  double variance_a = 0.5, variance_others = 0;
  double epsilon = 0;  // only with the single head μ_a + μ_b
  std::vector<std::array<double, 2>> heads = {{1, 1}};
};

/// Moments of the output over some of the draws. `variance` is the trace of its covariance.
struct Moments {
  double share = 1;  // of all draws
  double mean_a = 0, mean_b = 0;
  double variance = 0;
};

/// Apart: draws in which λ_a or λ_b is negative, so that a query meets its key pointing away.
struct SplitMoments {
  Moments all, positive, negative;
};

/// By quadrature over λ_a and λ_b; with ε, the other keys' share is taken at its mean.
SplitMoments predicted_moments(const NoisyLookup& lookup);

struct MeasuredMoments {
  SplitMoments value, standard_error;
  int64_t negative_draws = 0;
  std::vector<double> weight_of_a;  // of every draw
};
/// By drawing `samples` sets of keys and asking the library's attention. The same seed draws the same keys.
MeasuredMoments measured_moments(const NoisyLookup& lookup, int64_t samples, uint64_t seed);

/// The options noisy-keys and two-heads share, and the look-up they describe (one head, only k_a noisy).
Settings noisy_lookup_settings();
NoisyLookup noisy_lookup(const Settings& set);

}  // namespace qkv::lab
