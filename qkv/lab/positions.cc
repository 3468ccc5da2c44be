// Experiment: without positions self-attention cannot tell order; sinusoids and rotations give it relative positions.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "qkv/base/error.h"
#include "qkv/lab/experiments.h"
#include "qkv/lab/vectors.h"
#include "qkv/ops/ops.h"

namespace qkv::lab {
namespace {

// The angular frequency of the pair of columns (2j, 2j+1).
double frequency(int64_t j, int64_t d) { return std::pow(10000.0, -2.0 * double(j) / double(d)); }

// P[i, 2j] = sin(i ω_j), P[i, 2j+1] = cos(i ω_j); f64 [n, d].
Tensor sinusoids(int64_t n, int64_t d) {
  Tensor p = Tensor::empty({n, d}, DType::f64);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < d / 2; ++j) {
      p.f64()[i * d + 2 * j] = std::sin(double(i) * frequency(j, d));
      p.f64()[i * d + 2 * j + 1] = std::cos(double(i) * frequency(j, d));
    }
  }
  return p;
}

// Each pair of columns of row i turned by (i + shift)·ω_j: rotary positions.
Tensor rotated(const Tensor& x, int64_t shift) {
  Tensor y = x.clone();
  const int64_t d = x.dim(1);
  for (int64_t i = 0; i < x.dim(0); ++i) {
    for (int64_t j = 0; j < d / 2; ++j) {
      const double angle = double(i + shift) * frequency(j, d), c = std::cos(angle), s = std::sin(angle);
      double* const pair = y.f64() + i * d + 2 * j;
      const double a = pair[0], b = pair[1];
      pair[0] = a * c - b * s;
      pair[1] = a * s + b * c;
    }
  }
  return y;
}

// Largest |P_{i+k} − R_k P_i|: sin(a+b) and cos(a+b) from the sines and cosines of row i, by one matrix for all i.
double rotation_error(const Tensor& p, int64_t k) {
  const int64_t d = p.dim(1);
  double worst = 0;
  for (int64_t i = 0; i + k < p.dim(0); ++i) {
    for (int64_t j = 0; j < d / 2; ++j) {
      const double angle = double(k) * frequency(j, d), s = p.at({i, 2 * j}), c = p.at({i, 2 * j + 1});
      worst = std::max(worst, std::abs(p.at({i + k, 2 * j}) - (s * std::cos(angle) + c * std::sin(angle))));
      worst = std::max(worst, std::abs(p.at({i + k, 2 * j + 1}) - (c * std::cos(angle) - s * std::sin(angle))));
    }
  }
  return worst;
}

Tensor self_attention(const Tensor& x) {
  return unbatched(attention(batch_of_one(x), batch_of_one(x), batch_of_one(x)));  // [n, d]
}

// The same by a plain softmax over stored scores, in f64.
Tensor composed_attention(const Tensor& x) {
  return matmul(softmax(matmul(x, transpose(x, 0, 1)) * (1 / std::sqrt(double(x.dim(1))))), x);
}

Tensor raw_scores(const Tensor& q, const Tensor& k) {
  return unbatched(attention_score_array(batch_of_one(q), batch_of_one(k), with_scale(1), ScoreStage::raw));  // [n, n]
}

void show_equivariance(Result& r, const Tensor& x, const Tensor& p, Rng& rng) {
  std::vector<int64_t> order(static_cast<size_t>(x.dim(0)));
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size() - 1; i > 0; --i) {
    std::swap(order[i], order[static_cast<size_t>(rng.below(static_cast<int64_t>(i) + 1))]);
  }
  const Tensor y = reordered(x, order);
  r.exact("no positions", "largest |attention(πx) − π attention(x)|", 0,
          largest_difference(self_attention(y), reordered(self_attention(x), order)));
  r.exact("with positions", "largest |attention(πx) − π attention(x)|",
          largest_difference(composed_attention(y + p), reordered(composed_attention(x + p), order)),
          largest_difference(self_attention(y + p), reordered(self_attention(x + p), order)));
}

void draw(Result& r, const Tensor& p, const Tensor& similar, int64_t column) {
  const int64_t n = p.dim(0), d = p.dim(1);
  Plot plot{
      .title = "Sinusoidal positions: four columns of the encoding",
      .caption = "Width " + std::to_string(d) + ". Each pair of columns is a sine and a cosine of one wavelength.",
      .x = Axis{.title = "position i", .whole = true},
      .y = Axis{.title = "P_ij"}};
  for (int64_t j = std::min(column, std::max<int64_t>(0, d - 4)); j < d && plot.series.size() < 4; ++j) {
    Series s{.name = "column " + std::to_string(j), .color = static_cast<int>(plot.series.size())};
    for (int64_t i = 0; i < n; ++i) {
      s.x.push_back(static_cast<double>(i));
      s.y.push_back(p.at({i, j}));
    }
    plot.series.push_back(s);
  }
  r.pictures.push_back(plot);
  HeatMap table = weight_map("P", p), product = weight_map("P_i·P_j", similar);
  table.row_title = "position";
  table.column_title = "column";
  product.row_title = product.column_title = "position";
  table.value_title = product.value_title = "value";
  table.scale = product.scale = MapScale::kCentered;
  r.pictures.push_back(Maps{"The encoding and its products",
                            {table, product},
                            2,
                            "Along each diagonal the products are equal: they know the distance alone."});
}

}  // namespace

Settings positions_settings() {
  Settings s;
  s.integer("dim", 32, "width of the encoding; even", 2, 512)
      .integer("positions", 60, "number of positions", 2, 512)
      .integer("shift", 7, "the relative shift that is shown to be a rotation", 0, 100)
      .integer("column", 6, "first of the four columns drawn", 0, 508)
      .integer("seed", 1, "of the contents and the permutation");
  return s;
}

Result run_positions(const Settings& set) {
  const int64_t d = set.get_integer("dim"), n = set.get_integer("positions"), shift = set.get_integer("shift");
  if (d % 2 != 0)
    throw ConfigError("--dim " + std::to_string(d) + ": sines and cosines come in pairs; give an even number");
  if (set.get_integer("column") + 4 > d && d >= 4) {
    throw ConfigError("--column " + std::to_string(set.get_integer("column")) +
                      ": four columns from there do not fit --dim " + std::to_string(d));
  }
  Rng rng(static_cast<uint64_t>(set.get_integer("seed")));
  const Tensor x = gaussian(n, d, rng), p = sinusoids(n, d);  // [n, d]
  Result r;
  r.claim =
      "Without positions self-attention is permutation-equivariant: shuffle the inputs and the outputs are "
      "shuffled the same way, nothing else; sinusoids break that, and a shift of position is a rotation of them.";
  r.formula =
      "attention(πx) = π attention(x)\n"
      "P_{i,2j} = sin(i ω_{j}),  P_{i,2j+1} = cos(i ω_{j}),  ω_{j} = 10000^{−2j/d}\n"
      "P_{i+k} = R_{k} P_{i}  and  P_{i}·P_{i+k} = Σ_{j} cos(k ω_{j}):  the product knows only the distance k";
  show_equivariance(r, x, p, rng);

  const Tensor similar = raw_scores(p, p);  // [n, n]
  for (const int64_t k : {int64_t{0}, int64_t{1}, shift}) {
    double expected = 0;
    for (int64_t j = 0; j < d / 2; ++j) expected += std::cos(double(k) * frequency(j, d));
    if (k >= n) continue;
    for (const int64_t i : {int64_t{0}, n - 1 - k}) {
      r.exact(at("distance", double(k)) + at(", i", double(i)), "P_i·P_(i+k), over d", expected / double(d),
              similar.at({i, i + k}) / double(d));
    }
  }
  r.exact(at("shift", double(shift)), "largest |P_(i+k) − R_k P_i|", 0, rotation_error(p, shift));

  // Rotary positions: turn q and k themselves, and every score depends on the distance alone.
  const Tensor q = gaussian(n, d, rng) * (1 / std::sqrt(double(d))), k = gaussian(n, d, rng);
  const Tensor here = raw_scores(rotated(q, 0), rotated(k, 0)),
               there = raw_scores(rotated(q, shift), rotated(k, shift));
  r.exact("rotary, all positions + " + std::to_string(shift), "largest change of a score", 0,
          largest_difference(here, there));
  draw(r, p, similar, set.get_integer("column"));
  r.note(
      "Positions are needed wherever order carries meaning, as in a sentence; a set needs none. A causal mask "
      "alone breaks the symmetry too: each query then sees a different number of keys.");
  return r;
}

}  // namespace qkv::lab
