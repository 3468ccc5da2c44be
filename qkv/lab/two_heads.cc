// Experiment: two heads, one per key, average two values steadily under noise that makes one head swing.
#include <algorithm>
#include <cmath>

#include "qkv/lab/experiments.h"
#include "qkv/lab/noisy_lookup.h"
#include "qkv/lab/vectors.h"

namespace qkv::lab {
namespace {

using Heads = std::vector<std::array<double, 2>>;
const Heads kOne = {{1, 1}};             // q = t(μ_a + μ_b)
const Heads kTwo = {{1, 0}, {0, 1}};     // q1 = tμ_a, q2 = tμ_b
const Heads kWrong = {{1, 1}, {1, -1}};  // q1 = t(μ_a + μ_b), q2 = t(μ_a − μ_b)

struct Outcome {
  SplitMoments predicted;
  MeasuredMoments measured;
};

Outcome outcome(NoisyLookup lookup, const Heads& heads, int64_t samples, uint64_t seed) {
  lookup.heads = heads;
  return {predicted_moments(lookup), measured_moments(lookup, samples, seed)};
}

void compare(Result& r, const std::string& at, const std::string& who, const Moments& p, const Moments& m,
             const Moments& error) {
  r.sampled(at, who + ": mean weight of v_a", p.mean_a, m.mean_a, error.mean_a);
  r.sampled(at, who + ": mean weight of v_b", p.mean_b, m.mean_b, error.mean_b);
  r.sampled(at, who + ": variance", p.variance, m.variance, error.variance);
}

void compare_all(Result& r, const std::string& at, const std::string& who, const Outcome& o) {
  compare(r, at, who, o.predicted.all, o.measured.value.all, o.measured.standard_error.all);
}

void compare_ratio(Result& r, const std::string& at, const std::string& which, const Moments& p1, const Moments& p2,
                   const std::array<Moments, 4>& measured) {
  const auto& [m1, e1, m2, e2] = measured;
  if (p2.variance <= 0 || m2.variance <= 0 || m1.variance <= 0) return;
  const double ratio = m1.variance / m2.variance;
  // The errors of the two variances are taken as independent; they share draws, which only makes this wider.
  const double error = ratio * std::hypot(e1.variance / m1.variance, e2.variance / m2.variance);
  r.sampled(at, "variance of one head / of two" + which, p1.variance / p2.variance, ratio, error);
}

// The first draws one after another: what a reader of the outputs would see.
void draw_outputs(Result& r, const Outcome& one, const Outcome& two) {
  constexpr size_t kShown = 120;
  std::vector<double> x, y1, y2;
  for (size_t i = 0; i < std::min(kShown, one.measured.weight_of_a.size()); ++i) {
    x.push_back(static_cast<double>(i));
    y1.push_back(one.measured.weight_of_a[i]);
    y2.push_back(two.measured.weight_of_a[i]);
  }
  r.pictures.push_back(
      Plot{.title = "The same noisy keys, one head and two: the weight of v_a from draw to draw",
           .caption = "One head swings between 0 and 1. Two heads stay at ½ except for the draws in which "
                      "the length of k_a is near zero or negative.",
           .x = Axis{.title = "draw", .whole = true},
           .y = Axis{.title = "weight of v_a", .low = 0.0, .high = 1.0},
           .series = {dots("one head, q = t(μ_a + μ_b)", x, y1, 1), dots("two heads, tμ_a and tμ_b", x, y2, 0)}});
}

// Predicted variance of each design over the noise.
void draw_variances(Result& r, const NoisyLookup& base, const std::vector<const Outcome*>& measured) {
  const char* const names[] = {"one head", "heads μ_a ± μ_b", "two heads", "two heads, lengths > 0"};
  const Heads* const designs[] = {&kOne, &kWrong, &kTwo, &kTwo};
  const int colors[] = {1, 2, 0, 3};
  constexpr double kLeast = 1e-6;
  Plot plot{.title = "Variance of the output: two heads against one",
            .caption = "Only k_a noisy. Lines: predicted; dots: measured, with three standard errors.",
            .x = Axis{.title = "variance s² of the length of k_a"},
            .y = Axis{.title = "variance of the output", .log = true, .low = kLeast, .high = 1.0}};
  for (size_t i = 0; i < 4; ++i) {
    Series line{.name = names[i], .color = colors[i]};
    for (int k = 2; k <= 40; ++k) {
      NoisyLookup n = base;
      n.heads = *designs[i];
      n.variance_a = base.variance_a * k / 40.0;
      const SplitMoments p = predicted_moments(n);
      const double variance = i < 3 ? p.all.variance : p.positive.variance;
      if (variance < kLeast) continue;  // below the picture
      line.x.push_back(n.variance_a);
      line.y.push_back(variance);
    }
    plot.series.push_back(line);
    const MeasuredMoments& m = measured[i]->measured;
    const Moments &value = i < 3 ? m.value.all : m.value.positive,
                  &error = i < 3 ? m.standard_error.all : m.standard_error.positive;
    plot.series.push_back(dots("", {base.variance_a}, {value.variance}, colors[i], {3 * error.variance}));
  }
  r.pictures.push_back(plot);
}

void noisy_case(Result& r, const std::string& at, const NoisyLookup& lookup, int64_t samples, uint64_t seed) {
  const Outcome one = outcome(lookup, kOne, samples, seed), two = outcome(lookup, kTwo, samples, seed);
  compare_all(r, at, "one head", one);
  compare_all(r, at, "two heads", two);
  compare_ratio(r, at, "", one.predicted.all, two.predicted.all,
                {one.measured.value.all, one.measured.standard_error.all, two.measured.value.all,
                 two.measured.standard_error.all});
  const SplitMoments &p = two.predicted, &m = two.measured.value, &e = two.measured.standard_error;
  if (p.negative.share > 0) {
    r.sampled(at, "share of draws with a negative length", p.negative.share, m.negative.share, e.negative.share);
    compare(r, at, "two heads, lengths > 0", p.positive, m.positive, e.positive);
    compare_ratio(r, at, ", lengths > 0", one.predicted.positive, p.positive,
                  {one.measured.value.positive, one.measured.standard_error.positive, m.positive, e.positive});
    if (two.measured.negative_draws > 1) compare(r, at, "two heads, a length < 0", p.negative, m.negative, e.negative);
  }
  const Outcome wrong = outcome(lookup, kWrong, samples, seed);
  compare_all(r, at, "heads μ_a ± μ_b", wrong);
  if (lookup.variance_others > 0 || lookup.variance_a <= 0) return;
  draw_outputs(r, one, two);
  draw_variances(r, lookup, {&one, &wrong, &two, &two});
}

void noiseless_case(Result& r, NoisyLookup lookup, uint64_t seed) {
  lookup.variance_a = 0;
  const auto add = [&](const char* who, const Heads& heads) {
    const Outcome o = outcome(lookup, heads, 2, seed);
    r.exact("no noise", std::string(who) + ": weight of v_a", o.predicted.all.mean_a, o.measured.value.all.mean_a);
    r.exact("no noise", std::string(who) + ": weight of v_b", o.predicted.all.mean_b, o.measured.value.all.mean_b);
  };
  add("two heads", kTwo);
  add("heads μ_a ± μ_b", kWrong);
}

}  // namespace

Settings two_heads_settings() { return noisy_lookup_settings(); }

Result run_two_heads(const Settings& set) {
  const NoisyLookup base = noisy_lookup(set);
  const int64_t samples = set.get_integer("samples");
  const auto seed = static_cast<uint64_t>(set.get_integer("seed"));
  Result r;
  r.claim =
      "Two heads, q_1 = tμ_a and q_2 = tμ_b, averaged, give ½(v_a + v_b) with a far smaller variance than one "
      "head, because a head that looks for one key alone does not care how long that key is.";
  r.formula =
      "c = ½(c_{1} + c_{2}),  c_{1} ≈ v_{a} and c_{2} ≈ v_{b} while λ_{a}, λ_{b} > 0\n"
      "Var c = ¼(Var S_{1} |v_{a} − v̄_{≠a}|^{2} + Var S_{2} |v_{b} − v̄_{≠b}|^{2}),  S_{1} = "
      "e^{tλ_{a}}/(e^{tλ_{a}} + m − 1),  P(λ < 0) = Φ(−1/s)";
  noiseless_case(r, base, seed);
  noisy_case(r, "k_a noisy", base, samples, seed);
  NoisyLookup every = base;
  every.variance_others = base.variance_a;
  noisy_case(r, "all keys noisy", every, samples, seed);
  r.note(
      "A negative λ_a turns key a away from head 1, which then averages all the other values; such draws are "
      "reported separately.");
  r.note(
      "Common wrong answer: q_1 = t(μ_a + μ_b), q_2 = t(μ_a − μ_b). Weights are never negative, so the second "
      "head cannot subtract: it copies v_a, and the mean is ¾ v_a + ¼ v_b, with the swing of the first head on "
      "top.");
  return r;
}

}  // namespace qkv::lab
