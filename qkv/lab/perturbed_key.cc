// Experiment: one key is moved by a small ε, once or at random; the output moves along v_a − H by β(q·ε)α_a to first
// order.
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
      .x = Axis{.title = "length of ε", .log = true},
      .y = Axis{.title = "share of v_a − H", .log = true},
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

// ε drawn from N(0, σ²I): the mean of the change is of second order, its covariance of first.
void random_changes(Result& r, const KeyLookup& lookup, const Settings& set, Rng& rng) {
  constexpr int kHalvings = 3;
  std::vector<double> sigmas, deviations, means;
  for (int i = 0; i <= kHalvings; ++i) {
    const double sigma = set.get_number("sigma") * std::pow(0.5, i);
    const RandomKeyChange c = change_key_randomly(lookup, 0, sigma, set.get_integer("draws"), rng);
    const std::string point = at("ε ~ N(0, σ²I), σ", sigma);
    r.sampled(point, "mean change along v_a − H", c.mean, c.measured_mean, c.mean_error);
    r.first_order(point, "mean, second order ½α_a(1 − 2α_a)β²σ²|q|²", c.second_order_mean, c.measured_mean,
                  c.mean_bound + 3 * c.mean_error);
    r.sampled(point, "variance along v_a − H", c.variance, c.measured_variance, c.variance_error);
    r.first_order(point, "variance, first order (α_a βσ|q|)²", c.first_order_variance, c.measured_variance,
                  c.variance_bound + 3 * c.variance_error);
    r.exact(point, "variance in all other directions", 0, c.measured_total - c.measured_variance);
    sigmas.push_back(sigma);
    deviations.push_back(std::sqrt(c.measured_variance));
    means.push_back(std::abs(c.measured_mean));
  }
  const double weight = change_key(lookup, 0, lookup.q * 0.0).weight, unit = lookup.beta * norm(lookup.q);
  const Range range{sigmas.back(), sigmas.front(), true};
  r.pictures.push_back(
      Plot{.title = "A key moved at random: the output scatters by σ, its mean moves by σ²",
           .caption = "Lines: predicted to first and second order; dots: measured over the draws. Slopes 1 and 2.",
           .x = Axis{.title = "σ", .log = true},
           .y = Axis{.title = "share of v_a − H", .log = true},
           .series = {curve("standard deviation α_a βσ|q|", range, 0, [&](double s) { return weight * unit * s; }),
                      dots("", sigmas, deviations, 0),
                      curve("|mean| ½α_a|1 − 2α_a|β²σ²|q|²", range, 1,
                            [&](double s) { return weight * std::abs(1 - 2 * weight) * unit * unit * s * s / 2; }),
                      dots("", sigmas, means, 1)}});
}

}  // namespace

Settings perturbed_key_settings() {
  Settings s;
  s.integer("keys", 10, "number of (key, value) pairs", 2, 512)
      .integer("dim", 16, "dimensions of keys and values", 2, 1024)
      .number("beta", 0.25, "inverse temperature of the softmax", 0.001, 10)
      .number("step", 1, "largest length of ε; each row halves it", 0.001, 10)
      .integer("halvings", 7, "number of halvings of the step", 1, 12)
      .number("sigma", 0.5, "largest standard deviation of a random ε; three more rows halve it", 0.001, 10)
      .integer("draws", 16384, "draws of a random ε", 100, 1000000)
      .integer("seed", 1, "of the keys, values, query and ε");
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
      "first order:  dH = β (q·ε) α_{a} (v_{a} − H),  error ≤ δ^{2} / (12√3 (1 − α_{a}))\n"
      "ε ~ N(0, Σ):  E[H′ − H] ≈ ½ α_{a}(1 − 2α_{a}) β^{2} q^{T}Σq (v_{a} − H),  Cov[H′] ≈ α_{a}^{2} β^{2} q^{T}Σq "
      "(v_{a} − H)(v_{a} − H)^{T}";
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
  random_changes(r, lookup, set, rng);
  r.note("Each halving of the step divides the first-order error by " + ratios + ": towards 4, the square of 2.");
  r.note(
      "A random ε of mean zero still moves the mean: towards v_a while its weight is below ½, away from it above, "
      "because the weight is a sigmoid of the score, convex below ½ and concave above. The scatter is the larger of "
      "the "
      "two for small σ, and it has one direction only, v_a − H: the covariance has rank one.");
  return r;
}

}  // namespace qkv::lab
