// Experiment: attention that is the identity, with a linear map in its values, is a linear layer run over the
// positions.
#include <cmath>

#include "qkv/lab/experiments.h"
#include "qkv/lab/vectors.h"
#include "qkv/ops/ops.h"

namespace qkv::lab {
Settings running_linear_settings() {
  Settings s;
  s.integer("keys", 12, "number of positions", 2, 256)
      .integer("dim", 16, "dimensions of the positional keys; at least the number of positions", 1, 512)
      .integer("inputs", 6, "channels of the input", 1, 512)
      .integer("outputs", 4, "channels of the output", 1, 512)
      .number("beta", 20, "largest β of the sweep", 0, 100)
      .integer("seed", 1, "of the input, the keys and the weights");
  return s;
}

Result run_running_linear(const Settings& set) {
  const int64_t n = set.get_integer("keys"), d = set.get_integer("dim"), in = set.get_integer("inputs"),
                out = set.get_integer("outputs");
  check_orthogonal(n, d, "orthonormal positional keys");
  Rng rng(static_cast<uint64_t>(set.get_integer("seed")));
  const Tensor positions = orthonormal(n, d, rng);  // [n, d]
  const Tensor x = gaussian(n, in, rng), weight = gaussian(out, in, rng) * (1 / std::sqrt(double(in)));
  const Tensor wanted = linear(x, weight);  // [n, out], the running linear layer
  const Tensor others = (sum(wanted, 0, true) - wanted) * (1.0 / double(n - 1));
  const Tensor value = linear(batch_of_one(x), weight.to(DType::f32));  // [1, n, out]: W_V carries the map
  const auto attend = [&](const ScoreRule& rule) {
    return unbatched(attention(batch_of_one(positions), batch_of_one(positions), value, rule));  // [n, out]
  };

  Result r;
  r.claim =
      "Self-attention whose weights are the identity (positional keys, β → ∞) and whose values carry a linear map "
      "W is that linear layer run over the positions: a 1×1 convolution.";
  r.formula =
      "q_{i} = k_{i} orthonormal, v_{i} = W x_{i}:  H_{i} = α W x_{i} + (1 − α)·(mean of the other W x_{j}),  α = "
      "e^{β}/(e^{β} + n − 1)\n"
      "β = 0:  H_{i} = W x̄ for every i";
  for (const double share : {0.0, 0.05, 0.1, 0.25, 0.5, 1.0}) {
    const double beta = share * set.get_number("beta"), alpha = 1 / (1 + double(n - 1) * std::exp(-beta));
    r.exact(at("β", beta), "largest error against W x_i", (1 - alpha) * largest_difference(others, wanted),
            largest_difference(attend(with_scale(beta)), wanted));
  }
  ScoreRule hard;
  hard.normaliser = Normaliser::hard;
  r.exact("hard", "largest error against W x_i", 0, largest_difference(attend(hard), wanted));

  // The wrong answer: at β = 0 all outputs are the same vector, W times the mean input.
  const Tensor flat = attend(with_scale(0)), mean_value = mean(wanted, 0, true);  // [n, out], [1, out]
  double apart = 0;
  for (int64_t i = 0; i < n; ++i) apart = std::max(apart, largest_difference(row(flat, i), row(flat, 0)));
  r.exact("β = 0", "largest difference between two outputs", 0, apart);
  r.exact("β = 0", "error against W times the mean input", 0, largest_difference(row(flat, 0), mean_value));
  r.pictures.push_back(
      Plot{.title = "A linear layer run over the positions, by attention",
           .caption = "The first output channel. Hard attention lies on the linear layer; β = 0 is flat.",
           .x = Axis{.title = "position", .whole = true},
           .y = Axis{.title = "output"},
           .series = {first_channel("linear layer W x_i", wanted, 0, Marks::kLine),
                      first_channel("attention, hard (β → ∞)", attend(hard), 0, Marks::kDots),
                      first_channel("attention, β = 2", attend(with_scale(2)), 2, Marks::kLineAndDots),
                      first_channel("attention, β = 0", flat, 1, Marks::kLineAndDots)}});
  r.note(
      "Common wrong answer: \"β = 0 gives a running linear layer\". At β = 0 every position sees the same "
      "average, so all outputs are equal; each position keeps its own input only as β → ∞ (or with hard "
      "attention).");
  return r;
}

}  // namespace qkv::lab
