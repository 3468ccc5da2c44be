// Experiment: one key is moved by a small ε; the output moves along v_a − H by β(q·ε)α_a to first order.
#include <cmath>
#include <cstdio>

#include "qkv/lab/experiments.h"
#include "qkv/lab/key_change.h"
#include "qkv/lab/vectors.h"
#include "qkv/ops/ops.h"

namespace qkv::lab {
namespace {

void draw(Result& r, const KeyLookup& lookup, const Tensor& direction, const std::vector<double>& steps,
          const std::vector<double>& errors) {
  std::vector<double> changes;
  for (const double y : r.measured_of("change along v_a − H")) changes.push_back(std::abs(y));
  changes.resize(steps.size());
  const Range range{steps.back(), steps.front(), true};
  const auto change = [&](double step) { return change_key(lookup, 0, direction * step); };
  r.pictures.push_back(Plot{
      .title = "Moving one key: the change is linear in the step, its error quadratic",
      .caption = "Lines: predicted; dots: measured by two calls of attention. Slopes 1 and 2 on these axes.",
      .x = {.title = "length of ε", .log = true},
      .y = {.title = "share of v_a − H", .log = true},
      .series = {curve("change, exact formula", range, 0, [&](double s) { return std::abs(change(s).exact); }),
                 dots("", steps, changes, 0),
                 curve("first order β(q·ε)α_a", range, 1, [&](double s) { return std::abs(change(s).first_order); }),
                 curve("error of the first order", range, 2,
                       [&](double s) {
                         const KeyChange c = change(s);
                         return std::abs(c.exact - c.first_order);
                       }),
                 dots("", steps, errors, 2)}});
  std::get<Plot>(r.pictures.back()).series[2].dashed = true;
}

}  // namespace

Settings perturbed_key_settings() {
  Settings s;
  s.integer("keys", 10, "number of (key, value) pairs", 2, 512)
      .integer("dim", 16, "dimensions of keys and values", 2, 1024)
      .number("beta", 0.25, "inverse temperature of the softmax", 0.001, 10)
      .number("step", 1, "largest length of ε; each row halves it", 0.001, 10)
      .integer("halvings", 7, "number of halvings of the step", 1, 12)
      .integer("seed", 1, "of the keys, values, query and direction of ε");
  return s;
}

Result run_perturbed_key(const Settings& set) {
  const int64_t m = set.get_integer("keys"), d = set.get_integer("dim"), halvings = set.get_integer("halvings");
  Rng rng(static_cast<uint64_t>(set.get_integer("seed")));
  const KeyLookup lookup{gaussian(1, d, rng), gaussian(m, d, rng), gaussian(m, d, rng), set.get_number("beta")};
  Tensor direction = gaussian(1, d, rng);
  // The component along q decides: keep it at half the length, so that the effect is seen at any dimension.
  const Tensor unit_q = lookup.q * (1 / norm(lookup.q));
  direction = direction - unit_q * dot(direction, unit_q);
  direction = direction * (std::sqrt(0.75) / norm(direction)) + unit_q * 0.5;  // [1, d], length 1

  Result r;
  r.claim =
      "Moving one key by a small ε moves the output along v_a − H by β(q·ε)α_a: towards v_a if ε has a part along "
      "the query, away from it if against, with an error that shrinks as the square of the step.";
  r.formula =
      "exact:  H′ − H = α_{a}(e^{δ} − 1) / (1 + α_{a}(e^{δ} − 1)) (v_{a} − H),  δ = β q·ε\n"
      "first order:  dH = β (q·ε) α_{a} (v_{a} − H),  error ≤ δ^{2} / (12√3 (1 − α_{a}))";
  std::vector<double> steps, errors;
  double error_before = 0, sideways = 0;
  std::string ratios;
  for (int64_t i = 0; i <= halvings; ++i) {
    const double step = set.get_number("step") * std::pow(0.5, double(i));
    const KeyChange c = change_key(lookup, 0, direction * step);
    compare_change(r, at("|ε|", step), c);
    const double error = std::abs(c.measured - c.first_order);
    steps.push_back(step);
    errors.push_back(error);
    sideways = std::max(sideways, c.sideways);
    char text[32];
    std::snprintf(text, sizeof text, "%s%.3f", i > 1 ? ", " : "", error_before / error);
    if (i > 0) ratios += text;
    error_before = error;
  }
  compare_change(r, "ε reversed", change_key(lookup, 0, direction * -set.get_number("step")));
  r.exact("all steps", "change off the line v_a − H", 0, sideways);
  draw(r, lookup, direction, steps, errors);
  r.note("Each halving of the step divides the first-order error by " + ratios + ": towards 4, the square of 2.");
  return r;
}

}  // namespace qkv::lab
