// Experiment: with one orthonormal key per position, self-attention is the identity or any permutation.
#include <cmath>
#include <numeric>

#include "qkv/lab/experiments.h"
#include "qkv/lab/vectors.h"
#include "qkv/ops/ops.h"

namespace qkv::lab {
namespace {

// Where output i takes its input from.
std::vector<int64_t> make_order(const std::string& name, int64_t n, Rng& rng) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  if (name == "reverse") {
    for (int64_t i = 0; i < n; ++i) order[static_cast<size_t>(i)] = n - 1 - i;
  } else if (name == "shift") {
    for (int64_t i = 0; i < n; ++i) order[static_cast<size_t>(i)] = (i + 1) % n;
  } else if (name == "random") {
    for (int64_t i = n - 1; i > 0; --i) {
      std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(rng.below(i + 1))]);
    }
  }
  return order;
}

// Root mean square over the rows of |a_i − b_i|.
double row_error(const Tensor& a, const Tensor& b) { return distance(a, b) / std::sqrt(static_cast<double>(a.dim(0))); }

}  // namespace

Settings identity_settings() {
  Settings s;
  s.integer("keys", 8, "number of positions", 2, 256)
      .integer("dim", 16, "dimensions of the positional keys and of the contents", 1, 512)
      .number("beta", 20, "largest β of the sweep", 0, 100)
      .choice("order", "reverse", {"reverse", "shift", "random"}, "the permutation shown beside the identity")
      .integer("seed", 1, "of the contents, the keys and the random permutation");
  return s;
}

Result run_identity(const Settings& set) {
  const int64_t n = set.get_integer("keys"), d = set.get_integer("dim");
  check_orthogonal(n, d, "orthonormal positional keys");
  Rng rng(static_cast<uint64_t>(set.get_integer("seed")));
  const Tensor positions = orthonormal(n, d, rng);                    // [n, d]
  const Tensor x = gaussian(n, d, rng) * (1 / std::sqrt(double(d)));  // [n, d], the contents
  Result r;
  r.claim =
      "With orthonormal positional keys and β → ∞, self-attention is the identity (q_i = k_i) or any permutation "
      "of the positions (q_i = k_π(i)): every output is one input, untouched.";
  r.formula =
      "q_{i} = k_{π(i)}:  α_{i,π(i)} = e^{β} / (e^{β} + n − 1) → 1\n"
      "H_{i} − x_{π(i)} = (1 − α) (mean of the other inputs − x_{π(i)})";
  const std::string& name = set.get_text("order");
  Maps maps{"Self-attention as the identity and as a permutation",
            {},
            3,
            "Left to right β grows: from the average of all to one input each."};
  for (const std::string& which : {std::string("identity"), name}) {
    const std::vector<int64_t> order = make_order(which, n, rng);
    const Tensor q = reordered(positions, order), wanted = reordered(x, order);
    const Tensor others = (sum(x, 0, true) - wanted) * (1.0 / double(n - 1));  // [n, d]
    const auto attend = [&](const ScoreRule& rule) {
      return unbatched(attention(batch_of_one(q), batch_of_one(positions), batch_of_one(x), rule));
    };
    for (const double share : {0.0, 0.1, 0.25, 0.5, 1.0}) {
      const double beta = share * set.get_number("beta");
      const double weight = 1 / (1 + double(n - 1) * std::exp(-beta));
      const ScoreRule rule = with_scale(beta);
      const Tensor map = unbatched(attention_score_array(batch_of_one(q), batch_of_one(positions), rule));  // [n, n]
      if (share > 0 && share != 0.5) maps.maps.push_back(weight_map(at((which + ", β").c_str(), beta), map));
      double least = 1;
      for (int64_t i = 0; i < n; ++i) least = std::min(least, map.at({i, order[static_cast<size_t>(i)]}));
      r.exact(at((which + ", β").c_str(), beta), "smallest weight on x_π(i)", weight, least);
      r.exact(at((which + ", β").c_str(), beta), "error of H (root mean square)",
              (1 - weight) * row_error(others, wanted), row_error(attend(rule), wanted));
    }
    ScoreRule hard;
    hard.normaliser = Normaliser::hard;
    r.exact(which + ", hard", "error of H (root mean square)", 0, row_error(attend(hard), wanted));
  }
  r.pictures.push_back(maps);
  r.note("The contents pass through as values and never enter the scores: positions alone decide who looks where.");
  return r;
}

}  // namespace qkv::lab
