// Drawing one token.
#include "qkv/models/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "qkv/base/error.h"

namespace qkv {

int64_t sample_token(std::span<const float> scores, const SampleOptions& options, Rng& rng) {
  if (scores.empty()) throw ConfigError("[sample] no scores to draw from");
  if (!(options.temperature >= 0)) throw ConfigError("[sample] the temperature must be 0 or more");
  if (options.top_k < 0) throw ConfigError("[sample] top-k must be 0 or more");
  if (!(options.top_p > 0 && options.top_p <= 1)) throw ConfigError("[sample] top-p must be above 0 and at most 1");
  const double u = rng.uniform();
  std::vector<int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  if (options.temperature == 0) return order[0];
  if (options.top_k > 0 && static_cast<size_t>(options.top_k) < order.size()) {
    order.resize(static_cast<size_t>(options.top_k));
  }
  const double highest = scores[static_cast<size_t>(order[0])];
  std::vector<double> weights;
  double total = 0;
  for (const int64_t i : order) {
    weights.push_back(std::exp((scores[static_cast<size_t>(i)] - highest) / options.temperature));
    total += weights.back();
  }
  double kept = 0;
  size_t n = 0;
  while (n < weights.size() && (n == 0 || kept < options.top_p * total)) kept += weights[n++];
  double left = u * kept;
  for (size_t i = 0; i < n; ++i) {
    left -= weights[i];
    if (left < 0) return order[i];
  }
  return order[n - 1];
}

}  // namespace qkv
