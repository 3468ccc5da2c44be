// Experiment: the gradient on its way down a deep stack, with and without residuals and layer norm, pre and post.
#include <algorithm>
#include <cmath>

#include "qkv/lab/experiments.h"
#include "qkv/lab/vectors.h"
#include "qkv/ops/ops.h"

namespace qkv::lab {
namespace {

constexpr int64_t kTokens = 4;  // vectors that go through each stack side by side

// How a layer is put together from f(x) = Wx and the norm N.
struct Arrangement {
  const char* name;
  bool residual, norm, before;
};
constexpr Arrangement kArrangements[] = {{"plain: f(x)", false, false, false},
                                         {"norm alone: N(f(x))", false, true, false},
                                         {"residual: x + f(x)", true, false, false},
                                         {"post-norm: N(x + f(x))", true, true, false},
                                         {"pre-norm: x + f(N(x))", true, true, true}};

struct Stack {
  int64_t layers = 24, dim = 128;
  double gain = 0.5;  // g: W_ij ~ N(0, g²/d), so that |Wx| = g|x| in the mean square

  // Mean square of the gradient at the input of layer l, the gradient at the output being 1.
  double predicted_square(const Arrangement& a, int64_t l) const {
    const double g2 = gain * gain;
    const auto above = static_cast<double>(layers - l);
    if (!a.norm) return std::pow((a.residual ? 1 : 0) + g2, above);
    if (!a.before) return 1;
    return (1 + static_cast<double>(layers) * g2) / (1 + static_cast<double>(l) * g2);
  }
  // The part of the gradient that has come down unchanged, as a share of what there was at the output.
  double predicted_straight(const Arrangement& a, int64_t l) const {
    if (!a.residual) return l == layers ? 1 : 0;
    return a.norm && !a.before ? std::pow(1 + gain * gain, -0.5 * static_cast<double>(layers - l)) : 1;
  }
};

Tensor normed(const Tensor& x) {
  const Tensor one = Tensor::full({x.dim(1)}, 1), zero = Tensor::zeros({x.dim(1)});
  return layer_norm(x, one, zero);
}

Tensor layer(const Arrangement& a, const Tensor& x, const Tensor& w) {
  const Tensor f = linear(a.before ? normed(x) : x, w);
  const Tensor sum = a.residual ? x + f : f;
  return a.norm && !a.before ? normed(sum) : sum;
}

// Mean over the tokens of one draw, at the input of every layer: entry l, and entry `layers` for the output.
struct Descent {
  std::vector<double> square, straight;
};
Descent descend(const Stack& s, const Arrangement& a, const std::vector<Tensor>& weights, Tensor x,
                const Tensor& d_out) {
  std::vector<Tensor> inputs;  // of each layer, leaves: a layer is recorded and run backwards by itself
  for (const Tensor& w : weights) {
    inputs.push_back(x.detach());
    x = layer(a, inputs.back(), w).detach();
  }
  const auto note = [&](const Tensor& g, Descent& d, size_t l) {
    for (int64_t i = 0; i < kTokens; ++i) {
      const double whole = dot(row(d_out, i), row(d_out, i)), share = 1.0 / kTokens / whole;
      d.square[l] += share * dot(row(g, i), row(g, i));
      d.straight[l] += share * dot(row(g, i), row(d_out, i));
    }
  };
  const auto L = static_cast<size_t>(s.layers);
  Descent d{std::vector<double>(L + 1, 0.0), std::vector<double>(L + 1, 0.0)};
  Tensor g = d_out;
  note(g, d, L);
  for (size_t l = L; l-- > 0;) {
    Tensor leaf = inputs[l];
    leaf.set_requires_grad(true);
    layer(a, leaf, weights[l]).backward(g);
    g = leaf.grad();
    note(g, d, l);
  }
  return d;
}

struct Measured {
  std::vector<double> mean, error;  // one per layer, and the output's
};
Measured summary(const std::vector<Descent>& draws, std::vector<double> Descent::*part) {
  const size_t points = (draws[0].*part).size();
  const auto n = static_cast<double>(draws.size());
  Measured m{std::vector<double>(points, 0.0), std::vector<double>(points, 0.0)};
  for (size_t l = 0; l < points; ++l) {
    double squares = 0;
    for (const Descent& d : draws) {
      m.mean[l] += (d.*part)[l] / n;
      squares += (d.*part)[l] * (d.*part)[l] / n;
    }
    m.error[l] = std::sqrt(std::max(0.0, squares - m.mean[l] * m.mean[l]) / (n - 1));
  }
  return m;
}

void compare_norm(Result& r, Rng& rng, int64_t dim) {
  const Tensor x = Tensor::randn({kTokens, dim}, rng, 10.0);
  const Tensor y = normed(x);
  double middle = 0, spread = 0;
  for (int64_t i = 0; i < kTokens; ++i) {
    double total = 0;
    for (const double v : row(y, i).to_doubles()) total += v;
    middle = std::max(middle, std::abs(total / double(dim)));
    spread = std::max(spread, std::abs(dot(row(y, i), row(y, i)) / double(dim) - 1));
  }
  r.exact("layer norm of 4 tokens", "largest |mean|", 0, middle);
  r.exact("layer norm of 4 tokens", "largest |variance − 1|", 0, spread);
  r.exact("layer norm of 4 tokens", "largest |N(3x + 2) − N(x)|", 0, largest_difference(normed(affine(x, 3, 2)), y));
}

void draw(Result& r, const Stack& s, const std::vector<Measured>& squares, const std::vector<Measured>& straights) {
  Plot lengths{.title = "The gradient on its way down",
               .caption = "Root mean square, the output's being 1. Lines: predicted; dots: measured.",
               .x = Axis{.title = "layer, from the input (left) to the output (right)", .whole = true},
               .y = Axis{.title = "length of the gradient", .log = true}};
  Plot direct{.title = "What of it came straight down",
              .caption = "The part along the gradient at the output. Lines: predicted; dots: measured.",
              .x = Axis{.title = "layer", .whole = true},
              .y = Axis{.title = "unchanged part"}};
  for (size_t i = 0; i < std::size(kArrangements); ++i) {
    const Arrangement& a = kArrangements[i];
    const int color = static_cast<int>(i);
    Series line{.name = a.name, .color = color}, share{.name = a.name, .color = color};
    std::vector<double> x, y;
    for (int64_t l = 0; l <= s.layers; ++l) {
      line.x.push_back(static_cast<double>(l));
      line.y.push_back(std::sqrt(s.predicted_square(a, l)));
      share.x.push_back(static_cast<double>(l));
      share.y.push_back(s.predicted_straight(a, l));
      x.push_back(static_cast<double>(l));
      y.push_back(std::sqrt(squares[i].mean[static_cast<size_t>(l)]));
    }
    lengths.series.push_back(line);
    lengths.series.push_back(dots("", x, y, color));
    if (!a.residual) continue;
    direct.series.push_back(share);
    direct.series.push_back(dots("", x, straights[i].mean, color));
  }
  r.pictures.push_back(lengths);
  r.pictures.push_back(direct);
}

}  // namespace

Settings depth_settings() {
  Settings s;
  s.integer("layers", 24, "layers of each stack", 2, 96)
      .integer("dim", 128, "width", 8, 512)
      .number("gain", 0.5, "g: the length of f(x) over that of x, at the start of a training", 0.05, 1.5)
      .integer("draws", 24, "stacks drawn", 4, 1000)
      .integer("seed", 1, "of weights, inputs and gradients");
  return s;
}

Result run_depth(const Settings& set) {
  const Stack s{set.get_integer("layers"), set.get_integer("dim"), set.get_number("gain")};
  Rng rng(static_cast<uint64_t>(set.get_integer("seed")));
  std::vector<std::vector<Descent>> draws(std::size(kArrangements));
  for (int64_t n = 0; n < set.get_integer("draws"); ++n) {
    std::vector<Tensor> weights;
    for (int64_t l = 0; l < s.layers; ++l) {
      weights.push_back(Tensor::randn({s.dim, s.dim}, rng, s.gain / std::sqrt(static_cast<double>(s.dim))));
    }
    const Tensor x = Tensor::randn({kTokens, s.dim}, rng), d_out = Tensor::randn({kTokens, s.dim}, rng);
    for (size_t i = 0; i < draws.size(); ++i) draws[i].push_back(descend(s, kArrangements[i], weights, x, d_out));
  }
  Result r;
  r.claim =
      "Without residuals the gradient shrinks or grows by a factor per layer and arrives scrambled; a residual lets it "
      "through unchanged; layer norm keeps it from growing by a factor per layer. Pre-norm keeps the straight way "
      "open, "
      "post-norm narrows it with every layer.";
  r.formula =
      "N(x) = γ (x − mean(x)) / √(var(x) + ε) + β,  over the width of each token;  f(x) = Wx,  W_{ij} ~ N(0, g^{2}/d)\n"
      "mean square of the gradient, L − l layers down:  plain g^{2(L−l)};  residual (1 + g^{2})^{L−l};  pre-norm "
      "(1 + Lg^{2})/(1 + lg^{2});  post-norm and norm alone 1\n"
      "part that is unchanged:  residual and pre-norm 1;  post-norm (1 + g^{2})^{−(L−l)/2};  without residual 0";
  std::vector<Measured> squares, straights;
  for (size_t i = 0; i < draws.size(); ++i) {
    const Arrangement& a = kArrangements[i];
    squares.push_back(summary(draws[i], &Descent::square));
    straights.push_back(summary(draws[i], &Descent::straight));
    for (const int64_t l : {s.layers / 2, int64_t{0}}) {
      const auto at_layer = static_cast<size_t>(l);
      const std::string point = std::string(a.name) + ", layer " + std::to_string(l);
      const auto add = [&](const char* what, double wanted, const Measured& m) {
        if (!a.norm) return r.sampled(point, what, wanted, m.mean[at_layer], m.error[at_layer]);
        // With a norm the formulas are those of a wide layer: a share of about 1/d is lost or gained at every one.
        const double narrow = 2 * wanted * double(s.layers - l) / double(s.dim);
        r.first_order(point, what, wanted, m.mean[at_layer], 3 * m.error[at_layer] + narrow);
      };
      add("mean square of the gradient", s.predicted_square(a, l), squares.back());
      add("unchanged part", s.predicted_straight(a, l), straights.back());
    }
  }
  compare_norm(r, rng, s.dim);
  draw(r, s, squares, straights);
  r.note(
      "f(x) = Wx stands for a sublayer as it starts. A feed-forward block W_2 max(0, W_1 x) with W_1 ~ N(0, 2/d) and "
      "W_2 ~ N(0, g²/h) has the same mean squares: half of its units are off, and the 2 makes up for it.");
  r.note(
      "Why pre-norm grows slowly: the sum x_l grows as √(1 + lg²) while each new term has length g, so later layers "
      "change it less and less. Why post-norm needs a warm-up: what comes down its straight way is divided by "
      "√(1 + g²) at every layer, so the first layers learn through all the others, while the last ones get the full "
      "gradient at once (Xiong et al., 2020).");
  return r;
}

}  // namespace qkv::lab
