// Experiment: one head per relative offset makes self-attention a convolution; compared with a direct one.
#include <algorithm>
#include <cmath>

#include "qkv/base/error.h"
#include "qkv/lab/experiments.h"
#include "qkv/lab/vectors.h"
#include "qkv/ops/ops.h"

namespace qkv::lab {
namespace {

struct Problem {
  int64_t length = 0, kernel = 0, inputs = 0, outputs = 0;
  Tensor x;       // [length + kernel - 1, inputs], zeros at both ends
  Tensor filter;  // [outputs, kernel, inputs]
};

Problem make_problem(int64_t length, int64_t kernel, int64_t channels, Rng& rng) {
  Problem p{length, kernel, channels, channels, {}, {}};
  const int64_t before = (kernel - 1) / 2, after = kernel - 1 - before;
  p.x = concat({Tensor::zeros({before, channels}, DType::f64), gaussian(length, channels, rng),
                Tensor::zeros({after, channels}, DType::f64)},
               0);
  p.filter = Tensor::randn({channels, kernel, channels}, rng, 1 / std::sqrt(double(kernel * channels)), DType::f64);
  return p;
}

// y[i, o] = Σ_k Σ_c filter[o, k, c] x[i + k, c], by plain loops.
Tensor direct_convolution(const Problem& p, const Tensor& x) {
  Tensor y = Tensor::zeros({p.length, p.outputs}, DType::f64);
  const double *f = p.filter.f64(), *in = x.f64();
  for (int64_t i = 0; i < p.length; ++i) {
    for (int64_t o = 0; o < p.outputs; ++o) {
      for (int64_t k = 0; k < p.kernel; ++k) {
        for (int64_t c = 0; c < p.inputs; ++c) {
          y.f64()[i * p.outputs + o] += f[(o * p.kernel + k) * p.inputs + c] * in[(i + k) * p.inputs + c];
        }
      }
    }
  }
  return y;
}

struct HeadPositions {
  Tensor q, k;  // [1, H, length, D], [1, 1, length + kernel - 1, D]
};

// Position j has key p_j; head h of query i asks for p_{i+h}. That is one matrix per head, Σ_j p_{j+h} p_jᵀ, the same
// for every i; here its result is written down directly.
HeadPositions make_positions(const Problem& p, Rng& rng) {
  const int64_t n = p.length + p.kernel - 1;
  const Tensor keys = orthonormal(n, n, rng).to(DType::f32);  // [n, n]
  std::vector<Tensor> heads;
  for (int64_t h = 0; h < p.kernel; ++h) heads.push_back(reshape(slice(keys, 0, h, h + p.length), {1, 1, p.length, n}));
  return {concat(heads, 1), reshape(keys, {1, 1, n, n})};
}

// Heads share their values, the inputs themselves; W_O holds the kernel's slices side by side.
Tensor attention_convolution(const Problem& p, const HeadPositions& at, const ScoreRule& rule) {
  const int64_t n = p.length + p.kernel - 1;
  const Tensor v = reshape(p.x.to(DType::f32), {1, 1, n, p.inputs});
  const Tensor heads = attention(at.q, at.k, v, rule);  // [1, H, length, inputs]
  const Tensor joined = reshape(permute(heads, {0, 2, 1, 3}), {p.length, p.kernel * p.inputs});
  const Tensor output = reshape(p.filter.to(DType::f32), {p.outputs, p.kernel * p.inputs});  // W_O
  return linear(joined, output);                                                             // [length, outputs]
}

void draw(Result& r, const Problem& p, const HeadPositions& at, double beta) {
  r.pictures.push_back(Plot{
      .title = "A convolution by attention",
      .caption = "Kernel " + std::to_string(p.kernel) + ", " + std::to_string(p.inputs) +
                 " channels; the first output channel.",
      .x = Axis{.title = "position", .whole = true},
      .y = Axis{.title = "output"},
      .series = {
          first_channel("direct convolution", direct_convolution(p, p.x), 0, Marks::kLine),
          first_channel(lab::at("attention, β", beta), attention_convolution(p, at, with_scale(beta)), 0, Marks::kDots),
          first_channel(lab::at("attention, β", beta / 10), attention_convolution(p, at, with_scale(beta / 10)), 1,
                        Marks::kLineAndDots)}});
  const Tensor weights = attention_score_array(at.q, at.k, with_scale(beta));  // [1, H, length, n]
  Maps maps{"One head per offset", {}, 3, "Keys include the zeros the signal is padded with at both ends."};
  for (int64_t h = 0; h < std::min<int64_t>(p.kernel, 6); ++h) {
    maps.maps.push_back(weight_map("head " + std::to_string(h) + ": offset " + std::to_string(h - (p.kernel - 1) / 2),
                                   reshape(slice(weights, 1, h, h + 1), {weights.dim(2), weights.dim(3)})));
  }
  r.pictures.push_back(maps);
}

}  // namespace

Settings convolution_settings() {
  Settings s;
  s.integer("length", 24, "length of the signal", 2, 256)
      .integer("kernel", 3, "size of the kernel in the pictures and in the sweep over β: one head each", 1, 15)
      .integer("channels", 4, "channels in and out, besides the case of one", 1, 64)
      .number("beta", 30, "largest β of the sweep", 0, 100)
      .integer("seed", 1, "of signal, kernel and positional keys");
  return s;
}

Result run_convolution(const Settings& set) {
  const int64_t length = set.get_integer("length"), channels = set.get_integer("channels");
  Rng rng(static_cast<uint64_t>(set.get_integer("seed")));
  Result r;
  r.claim =
      "Multi-head self-attention with one head for each relative offset is a convolution: head h copies position "
      "i + h, and its slice of W_O is the kernel's slice for that offset.";
  r.formula =
      "q_{i}^{(h)} = p_{i+h},  k_{j} = p_{j} orthonormal, β → ∞:  head h gives x_{i+h}\n"
      "y_{i} = Σ_{h} W_{O}^{(h)} x_{i+h},  W_{O}^{(h)} = kernel slice h";
  ScoreRule hard;
  hard.normaliser = Normaliser::hard;
  for (const int64_t kernel : {3, 5}) {
    for (const int64_t c : {int64_t{1}, channels}) {
      const Problem p = make_problem(length, kernel, c, rng);
      const HeadPositions heads = make_positions(p, rng);
      const Tensor wanted = direct_convolution(p, p.x);
      const std::string point = "kernel " + std::to_string(kernel) + ", channels " + std::to_string(c);
      r.exact(point, "largest error, β = 30", 0,
              largest_difference(attention_convolution(p, heads, with_scale(30)), wanted));
      r.exact(point, "largest error, hard", 0, largest_difference(attention_convolution(p, heads, hard), wanted));
      if (c == channels) break;
    }
  }
  const Problem p = make_problem(length, set.get_integer("kernel"), channels, rng);
  const HeadPositions heads = make_positions(p, rng);
  const Tensor wanted = direct_convolution(p, p.x), total = sum(p.x, 0, true);
  const double n = static_cast<double>(p.x.dim(0));
  for (const double share : {0.0, 0.1, 0.2, 0.5, 1.0}) {
    const double beta = share * set.get_number("beta");
    const double weight = 1 / (1 + (n - 1) * std::exp(-beta)), rest = (1 - weight) / std::max(1.0, n - 1);
    // A soft head gives weight·x + rest·(sum of the others): the convolution of a washed-out signal.
    const Tensor washed = p.x * (weight - rest) + expand(total * rest, p.x.shape());
    r.exact(at("β", beta), "largest error against the convolution",
            largest_difference(direct_convolution(p, contiguous(washed)), wanted),
            largest_difference(attention_convolution(p, heads, with_scale(beta)), wanted));
  }
  draw(r, p, heads, set.get_number("beta"));
  r.note(
      "Here the heads are the taps of one kernel: W_O sums over them as a convolution sums over taps and channels "
      "inside "
      "a kernel. Each kernel gives one output channel, and the channels of several kernels are concatenated. Attention "
      "chooses its offsets from the data, a convolution has them fixed.");
  return r;
}

}  // namespace qkv::lab
