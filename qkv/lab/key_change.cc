// What happens to the output when one key changes.
#include "qkv/lab/key_change.h"

#include <algorithm>
#include <cmath>

#include "qkv/lab/vectors.h"
#include "qkv/ops/ops.h"

namespace qkv::lab {
namespace {

Tensor batched(const Tensor& x) { return reshape(x, {1, x.dim(0), x.dim(1)}); }

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

void compare_change(Result& r, const std::string& at, const KeyChange& c) {
  r.exact(at, "change along v_a − H", c.exact, c.measured);
  // Rounding in f64 sets a floor under the square of the smallest steps.
  r.first_order(at, "first order β(q·ε)α_a", c.first_order, c.measured, c.bound + 1e-14);
}

}  // namespace qkv::lab
