// Experiment: heads look in subspaces of their own, so that two questions asked at once get two answers.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "qkv/lab/experiments.h"
#include "qkv/lab/vectors.h"
#include "qkv/ops/ops.h"

namespace qkv::lab {
namespace {

// Pair i has the key [e_i ; f_i] and the value [x_i ; y_i], all four sets orthonormal. Wanted: [x_a ; y_b].
struct Pairs {
  int64_t m = 0, half = 0, a = 0, b = 1;
  double beta = 1;
  Tensor keys[2], values[2];  // [m, half] each: of the first and of the second subspace

  Tensor wanted() const { return concat({row(values[0], a), row(values[1], b)}, 1); }         // [1, 2·half]
  Tensor query(double t) const { return concat({row(keys[0], a), row(keys[1], b)}, 1) * t; }  // [1, 2·half]
  Tensor whole_keys() const { return concat({keys[0], keys[1]}, 1); }                         // [m, 2·half]
  Tensor whole_values() const { return concat({values[0], values[1]}, 1); }
};

// x [L, heads·D] as the library's [1, heads, L, D].
Tensor heads_of(const Tensor& x, int64_t heads) {
  return transpose(reshape(x.to(DType::f32), {1, x.dim(0), heads, x.dim(1) / heads}), 1, 2);
}

// The heads' outputs side by side, [1, 2·half].
Tensor look(const Pairs& p, const Tensor& q, int64_t heads, const ScoreRule& rule) {
  const Tensor out = attention(heads_of(q, heads), heads_of(p.whole_keys(), heads), heads_of(p.whole_values(), heads),
                               rule);  // [1, heads, 1, D]
  return reshape(out.to(DType::f64), {1, 2 * p.half});
}

// Distance of w·(wanted) + (1 - w)·(mean of the others) in both halves.
double two_heads_distance(const Pairs& p, double t) {
  const auto others = static_cast<double>(p.m - 1);
  const double lost = 1 - 1 / (1 + others * std::exp(-p.beta * t));
  return std::sqrt(2 * (lost * lost + lost * lost / others));
}

// Both halves have w of a and w of b: one of the two is right in each half.
double one_head_distance(const Pairs& p, double t) {
  const auto others = static_cast<double>(p.m - 2);
  const double w = 1 / (2 + others * std::exp(-p.beta * t)), rest = (1 - 2 * w) / others;
  return std::sqrt(2 * ((1 - w) * (1 - w) + w * w + others * rest * rest));
}

// Random queries of many lengths: how many bring one head nearer than 1, and how near the nearest came.
struct Search {
  double nearer = 0, nearest = HUGE_VAL;
};
Search search(const Pairs& p, int64_t queries, Rng& rng) {
  Search s;
  const Tensor wanted = p.wanted();
  for (int64_t i = 0; i < queries; ++i) {
    const double length = std::pow(10.0, 2 * rng.uniform() - 0.5), lean = rng.uniform();
    // Leaning towards the question at hand: directions drawn blindly would hardly ever come near.
    const Tensor q =
        gaussian(1, 2 * p.half, rng) * ((1 - lean) * length / std::sqrt(2.0 * double(p.half))) + p.query(length * lean);
    const double off = distance(look(p, q, 1, with_scale(p.beta)), wanted);
    s.nearest = std::min(s.nearest, off);
    s.nearer += off < 1 - 1e-6 ? 1 : 0;
  }
  return s;
}

void draw(Result& r, const Pairs& p, double t_max, const std::vector<double>& sweep) {
  const Range range{0, t_max};
  r.pictures.push_back(Plot{.title = "Two questions at once: two heads answer both, one head mixes them",
                            .caption = "Lines: predicted; dots: measured. No weights bring one head nearer than 1.",
                            .x = Axis{.title = "t"},
                            .y = Axis{.title = "distance from [x_a ; y_b]", .low = 0.0},
                            .series = {curve("two heads", range, 0, [&](double t) { return two_heads_distance(p, t); }),
                                       dots("", sweep, r.measured_of("two heads: distance from [x_a ; y_b]"), 0),
                                       curve("one head", range, 1, [&](double t) { return one_head_distance(p, t); }),
                                       dots("", sweep, r.measured_of("one head: distance from [x_a ; y_b]"), 1)},
                            .guides = {{.at = 1, .label = "best of one head"}}});
  const auto weights = [&](int64_t heads) {
    const Tensor w = attention_score_array(heads_of(p.query(t_max), heads), heads_of(p.whole_keys(), heads),
                                           with_scale(p.beta));  // [1, heads, 1, m]
    HeatMap map = weight_map(heads == 1 ? "one head" : "two heads", reshape(w, {heads, p.m}));
    map.row_title = "head";
    map.numbers = true;
    return map;
  };
  r.pictures.push_back(
      Maps{"Where they look", {weights(1), weights(2)}, 1, at("q = t[e_a ; f_b] with a = 0, b = 1, t", t_max)});
}

}  // namespace

Settings subspaces_settings() {
  Settings s;
  s.integer("keys", 8, "number of (key, value) pairs", 3, 64)
      .integer("dim", 16, "dimensions of each of the two subspaces", 3, 256)
      .number("t", 10, "length of the question in each subspace; the sweep runs from 0 to it", 0.1, 50)
      .number("beta", 1, "inverse temperature of the softmax", 0.01, 10)
      .integer("queries", 1000, "random queries that try to do better with one head", 1, 100000)
      .integer("seed", 1, "of keys, values and random queries");
  return s;
}

Result run_subspaces(const Settings& set) {
  Rng rng(static_cast<uint64_t>(set.get_integer("seed")));
  Pairs p;
  p.m = set.get_integer("keys");
  p.half = set.get_integer("dim");
  p.beta = set.get_number("beta");
  check_orthogonal(p.m, p.half, "orthonormal keys");
  for (int i = 0; i < 2; ++i) {
    p.keys[i] = orthonormal(p.m, p.half, rng);
    p.values[i] = orthonormal(p.m, p.half, rng);
  }
  Result r;
  r.claim =
      "Two heads ask two questions at once, each in a subspace of its own, and get both answers side by side; one head "
      "has one set of weights for all dimensions, and no query brings it nearer than a mixture.";
  r.formula =
      "k_{i} = [e_{i} ; f_{i}],  v_{i} = [x_{i} ; y_{i}],  q = t[e_{a} ; f_{b}],  wanted [x_{a} ; y_{b}]\n"
      "two heads:  α_{a}^{(1)} = α_{b}^{(2)} = e^{βt} / (e^{βt} + m − 1) → 1\n"
      "one head:  α_{a} = α_{b} → ½;  Σ_{i} w_{i} v_{i} is never nearer than 1, whatever the weights";
  const Tensor wanted = p.wanted();
  const double t_max = set.get_number("t");
  std::vector<double> sweep;
  for (const double share : {0.0, 0.1, 0.25, 0.5, 1.0}) {
    const double t = share * t_max;
    r.exact(at("t", t), "two heads: distance from [x_a ; y_b]", two_heads_distance(p, t),
            distance(look(p, p.query(t), 2, with_scale(p.beta)), wanted));
    r.exact(at("t", t), "one head: distance from [x_a ; y_b]", one_head_distance(p, t),
            distance(look(p, p.query(t), 1, with_scale(p.beta)), wanted));
    sweep.push_back(t);
  }
  const Search tried = search(p, set.get_integer("queries"), rng);
  r.exact(std::to_string(set.get_integer("queries")) + " random queries", "one head: queries that come nearer than 1",
          0, tried.nearer);
  draw(r, p, t_max, sweep);
  char text[200];
  std::snprintf(text, sizeof text, "The nearest that a random query brought one head was %.4f.", tried.nearest);
  r.note(text);
  r.note(
      "Why 1: with weights w the squared distance is (1 − w_a)² + (1 − w_b)² + w_a² + w_b² + 2 Σ w_i² over the other "
      "keys; with Σ w_i = 1 it is smallest at w_a = w_b = ½, where it is 1.");
  r.note(
      "This is the other use of heads, besides steadiness under noise (two-heads): a word can agree with its subject "
      "and with its object at once. It costs nothing: two heads of half the width do the work of one.");
  return r;
}

}  // namespace qkv::lab
