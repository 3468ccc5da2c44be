// Experiment: self- and cross-attention, soft and hard: which of the four kinds copies and which spreads.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "qkv/lab/experiments.h"
#include "qkv/lab/vectors.h"
#include "qkv/ops/ops.h"

namespace qkv::lab {
namespace {

struct Look {
  Tensor q, x;  // [n, d] queries, [m, d] keys that are also the values
  double beta = 1;
  bool hard = false;

  ScoreRule rule() const {
    ScoreRule r = with_scale(beta);
    r.normaliser = hard ? Normaliser::hard : Normaliser::softmax;
    return r;
  }
};

// What is said of one look, averaged over its queries.
struct Traits {
  double largest = 0;      // weight
  double keys_in_use = 0;  // e^entropy
  double from_value = 0;   // distance of the output from the nearest value
  double from_mean = 0;    // and from the mean of all values
};

Traits traits_of(const Tensor& weights, const Tensor& outputs, const Tensor& x) {
  Traits t;
  const int64_t n = weights.dim(0), m = weights.dim(1);
  const Tensor middle = mean(x, 0, true);  // [1, d]
  for (int64_t i = 0; i < n; ++i) {
    const std::vector<double> p = row(weights, i).to_doubles();
    double nearest = HUGE_VAL;
    for (int64_t j = 0; j < m; ++j) nearest = std::min(nearest, distance(row(outputs, i), row(x, j)));
    t.largest += *std::max_element(p.begin(), p.end()) / double(n);
    t.keys_in_use += std::exp(plain_entropy(p)) / double(n);
    t.from_value += nearest / double(n);
    t.from_mean += distance(row(outputs, i), middle) / double(n);
  }
  return t;
}

// By plain loops in f64.
Traits predicted(const Look& look) {
  std::vector<Tensor> weights;
  const int64_t m = look.x.dim(0);
  for (int64_t i = 0; i < look.q.dim(0); ++i) {
    std::vector<double> z;
    for (int64_t j = 0; j < m; ++j) z.push_back(look.beta * dot(row(look.q, i), row(look.x, j)));
    std::vector<double> p(z.size(), 0.0);
    if (look.hard) {
      p[static_cast<size_t>(std::max_element(z.begin(), z.end()) - z.begin())] = 1;
    } else {
      p = plain_softmax(z);
    }
    weights.push_back(Tensor::from(std::span<const double>(p), {1, m}));
  }
  const Tensor all = concat(weights, 0);  // [n, m]
  return traits_of(all, matmul(all, look.x), look.x);
}

Tensor library_weights(const Look& look) {
  return unbatched(attention_score_array(batch_of_one(look.q), batch_of_one(look.x), look.rule()));  // [n, m]
}

void compare(Result& r, const std::string& at, const Look& look) {
  const Tensor x = batch_of_one(look.x);
  const Traits p = predicted(look),
               m = traits_of(library_weights(look), unbatched(attention(batch_of_one(look.q), x, x, look.rule())),
                             look.x);
  r.exact(at, "largest weight, mean over the queries", p.largest, m.largest);
  r.exact(at, "keys in use, e^entropy", p.keys_in_use, m.keys_in_use);
  r.exact(at, "distance from the nearest value", p.from_value, m.from_value);
  r.exact(at, "distance from the mean of the values", p.from_mean, m.from_mean);
}

// How many inputs find their own key best, as a share.
double finds_itself(const Tensor& x) {
  const Tensor w = library_weights({x, x, 1, true});
  double found = 0;
  for (int64_t i = 0; i < x.dim(0); ++i) found += w.at({i, i}) == 1 ? 1 : 0;
  return found / double(x.dim(0));
}

// n directions of length r; the second is at 30° to the first, so that a longer first key can win it over.
Tensor make_inputs(int64_t n, int64_t d, double length, Rng& rng) {
  const Tensor basis = orthonormal(n, d, rng);
  const double angle = std::numbers::pi / 6;
  const Tensor near = row(basis, 0) * std::cos(angle) + row(basis, 1) * std::sin(angle);
  return concat({row(basis, 0), near, slice(basis, 0, 2, n)}, 0) * length;
}

void draw(Result& r, const Tensor& x, const Tensor& y, double beta) {
  const auto map = [&](const char* title, const Look& look) { return weight_map(title, library_weights(look)); };
  r.pictures.push_back(Maps{"Self or cross, soft or hard",
                            {map("self, soft", {x, x, beta, false}), map("self, hard", {x, x, beta, true}),
                             map("cross, soft", {y, x, beta, false}), map("cross, hard", {y, x, beta, true})},
                            2,
                            "Hard rows have one key each: they copy. Soft rows share out."});
  const auto keys = [](const Tensor& q, const Tensor& k) {
    return [&q, &k](double b) { return predicted({q, k, b, false}).keys_in_use; };
  };
  const Range range{0, std::max(4 * beta, 1.0)};
  r.pictures.push_back(Plot{.title = "Soft attention: how many keys it uses",
                            .caption = "e^entropy, mean over the queries; predicted. Hard attention uses one.",
                            .x = Axis{.title = "β"},
                            .y = Axis{.title = "keys in use", .low = 0.0},
                            .series = {curve("self", range, 0, keys(x, x)), curve("cross", range, 1, keys(y, x))},
                            .guides = {{.at = 1, .label = "hard"}}});
}

}  // namespace

Settings kinds_settings() {
  Settings s;
  s.integer("keys", 6, "inputs of self-attention; keys of cross-attention", 3, 64)
      .integer("queries", 4, "queries of cross-attention, from another sequence", 1, 64)
      .integer("dim", 16, "dimensions", 3, 512)
      .number("length", 2, "length of the inputs", 0.1, 10)
      .number("beta", 1, "inverse temperature of the soft kinds", 0, 10)
      .integer("seed", 1, "of inputs and queries");
  return s;
}

Result run_kinds(const Settings& set) {
  const int64_t n = set.get_integer("keys"), d = set.get_integer("dim");
  check_orthogonal(n, d, "inputs");
  Rng rng(static_cast<uint64_t>(set.get_integer("seed")));
  const Tensor x = make_inputs(n, d, set.get_number("length"), rng), y = gaussian(set.get_integer("queries"), d, rng);
  const double beta = set.get_number("beta");
  Result r;
  r.claim =
      "Hard attention copies: every output is one of the values, in self-attention the input's own when all have the "
      "same length. Soft attention spreads: every value has a share, from the mean of all at β = 0 to a copy as β → ∞.";
  r.formula =
      "H = V·softargmax(βK^{T}Q);   self:  Q, K, V from one sequence;   cross:  Q from another\n"
      "hard:  β → ∞, one-hot columns;   keys in use:  e^{entropy}, 1 when hard, m at β = 0";
  compare(r, at("self, soft, β", beta), {x, x, beta, false});
  compare(r, "self, hard", {x, x, 1, true});
  compare(r, at("cross, soft, β", beta), {y, x, beta, false});
  compare(r, "cross, hard", {y, x, 1, true});
  compare(r, "self, soft, β = 0", {x, x, 0, false});
  compare(r, "cross, soft, β = 0", {y, x, 0, false});
  const Tensor longer = concat({row(x, 0) * 2.0, slice(x, 0, 1, n)}, 0);
  r.exact("self, equal lengths", "share of inputs that match themselves best", 1, finds_itself(x));
  r.exact("self, x_0 twice as long", "share of inputs that match themselves best", 1 - 1.0 / double(n),
          finds_itself(longer));
  draw(r, x, y, beta);
  r.note(
      "\"Every input matches itself best\" holds for inputs of equal length only: x_i·x_j ≤ |x_i||x_j|. Here x_1 "
      "stands "
      "at 30° to x_0; when x_0 is twice as long, x_1·x_0 = 2 cos 30°·|x_1|² is more than x_1·x_1.");
  r.note("Self or cross does not decide between copying and spreading; soft or hard does, and β says how soft.");
  return r;
}

}  // namespace qkv::lab
