// Experiment: what valid lengths, causal, window and boolean masks hide, and that nothing hidden reaches an output.
#include <algorithm>
#include <cmath>
#include <limits>

#include "qkv/base/error.h"
#include "qkv/lab/experiments.h"
#include "qkv/lab/vectors.h"
#include "qkv/ops/ops.h"

namespace qkv::lab {
namespace {

struct Masked {
  std::string name;
  ScoreRule rule;
  double visible = 0;  // pairs (i, j) by the formula
};

std::vector<Masked> make_masks(int64_t n, int64_t valid, int64_t left, int64_t right) {
  std::vector<Masked> all(4);
  all[0].name = "valid length " + std::to_string(valid);
  all[0].rule.key_lens = {valid};
  all[0].visible = double(n * valid);
  all[1].name = "causal";
  all[1].rule.causal = true;
  const auto sum_to = [](int64_t k) { return k * (k + 1) / 2; };
  all[1].visible = double(sum_to(n));
  all[2].name = "window " + std::to_string(left) + " left, " + std::to_string(right) + " right";
  all[2].rule.window_left = left;
  all[2].rule.window_right = right;
  const int64_t l = std::min(left, n - 1), w = std::min(right, n - 1);
  all[2].visible = double(n * (l + w + 1) - sum_to(l) - sum_to(w));
  all[3].name = "boolean, every other key";
  std::vector<uint8_t> keep(static_cast<size_t>(n * n));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) keep[static_cast<size_t>(i * n + j)] = (i + j) % 2 == 0 && i > 0 ? 1 : 0;
  }
  all[3].visible = double(std::count(keep.begin(), keep.end(), 1));
  all[3].rule.mask = bool_mask(std::move(keep), {n, n});
  return all;
}

void compare_map(Result& r, const Masked& m, const Tensor& weights) {
  double positive = 0, worst_sum = 0;
  for (int64_t i = 0; i < weights.dim(0); ++i) {
    double total = 0;
    bool any = false;
    for (int64_t j = 0; j < weights.dim(1); ++j) {
      const double w = weights.at({i, j});
      positive += w != 0 ? 1 : 0;
      any = any || w != 0;
      total += w;
    }
    if (any) worst_sum = std::max(worst_sum, std::abs(total - 1));
  }
  r.exact(m.name, "pairs (query, key) with weight", m.visible, positive);
  r.exact(m.name, "largest |row sum − 1|", 0, worst_sum);
}

void compare_masked_softmax(Result& r, Rng& rng) {
  const Tensor x = Tensor::randn({2, 2, 4}, rng);
  const auto positive = [&](std::vector<int64_t> lens) {
    const std::vector<double> p = masked_softmax(x, lens).to_doubles();
    return double(std::count_if(p.begin(), p.end(), [](double w) { return w > 0; }));
  };
  r.exact("masked_softmax [2,2,4], lengths [2,3]", "weights above 0", 2 * 2 + 2 * 3, positive({2, 3}));
  r.exact("masked_softmax [2,2,4], lengths [[1,3],[2,4]]", "weights above 0", 1 + 3 + 2 + 4, positive({1, 3, 2, 4}));
}

}  // namespace

Settings masks_settings() {
  Settings s;
  s.integer("keys", 8, "number of queries and of keys", 2, 128)
      .integer("dim", 8, "dimensions of queries, keys and values", 1, 256)
      .integer("valid", 5, "valid length", 0, 128)
      .integer("left", 2, "keys to the left inside the window", 0, 128)
      .integer("right", 1, "keys to the right inside the window", 0, 128)
      .integer("seed", 1, "of queries, keys and values");
  return s;
}

Result run_masks(const Settings& set) {
  const int64_t n = set.get_integer("keys"), d = set.get_integer("dim"), valid = set.get_integer("valid");
  if (valid > n) {
    throw ConfigError("--valid " + std::to_string(valid) + " is more than there are keys, --keys " + std::to_string(n));
  }
  Rng rng(static_cast<uint64_t>(set.get_integer("seed")));
  const Tensor q = batch_of_one(gaussian(n, d, rng)), k = batch_of_one(gaussian(n, d, rng)),
               v = batch_of_one(gaussian(n, d, rng));  // [1, n, d]
  Result r;
  r.claim =
      "A mask gives hidden keys a weight of exactly 0 and lets the others share 1; a query that sees no key gets "
      "a zero row, and nothing that is hidden, not even NaN, reaches an output.";
  r.formula =
      "valid length:  j < len;   causal:  j ≤ i;   window:  i − left ≤ j ≤ i + right;   boolean:  mask_{ij} true "
      "= takes part\n"
      "visible pairs:  n·len;   n(n + 1)/2;   n(l + r + 1) − l(l + 1)/2 − r(r + 1)/2";
  const std::vector<Masked> masks = make_masks(n, valid, set.get_integer("left"), set.get_integer("right"));
  Maps maps{"What each mask leaves of the attention", {}, 2, "Hatched cells are hidden: their weight is exactly 0."};
  for (const Masked& m : masks) {
    const Tensor weights = unbatched(attention_score_array(q, k, m.rule));  // [n, n]
    compare_map(r, m, weights);
    HeatMap map = weight_map(m.name, weights);
    for (const float w : map.values) map.hidden.push_back(w == 0 ? 1 : 0);
    maps.maps.push_back(map);
  }
  r.pictures.push_back(maps);

  // NaN in the keys and values past the valid length.
  Tensor k_bad = k.clone(), v_bad = v.clone();
  for (int64_t e = valid * d; e < n * d; ++e) {
    k_bad.f32()[e] = v_bad.f32()[e] = std::numeric_limits<float>::quiet_NaN();
  }
  r.exact(masks[0].name, "change when hidden keys and values are NaN", 0,
          largest_difference(attention(q, k_bad, v_bad, masks[0].rule), attention(q, k, v, masks[0].rule)));
  // A new last token: under the causal rule the earlier outputs do not notice.
  Tensor k_new = k.clone(), v_new = v.clone();
  for (int64_t e = (n - 1) * d; e < n * d; ++e) k_new.f32()[e] = v_new.f32()[e] = 3;
  const Tensor before = attention(q, k, v, masks[1].rule), after = attention(q, k_new, v_new, masks[1].rule);
  r.exact("causal", "change of earlier outputs when the last token changes", 0,
          largest_difference(slice(before, 1, 0, n - 1), slice(after, 1, 0, n - 1)));
  r.exact(masks[3].name, "output of query 0, which sees no key", 0,
          largest(slice(attention(q, k, v, masks[3].rule), 1, 0, 1)));
  compare_masked_softmax(r, rng);
  r.note(
      "The mask acts before the softmax: a hidden key takes no share of the weight. Zeroing weights after the "
      "softmax would leave rows that no longer sum to 1.");
  return r;
}

}  // namespace qkv::lab
