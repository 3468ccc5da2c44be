// Position tables and biases.
#include "qkv/nn/positions.h"

#include <cmath>

#include "qkv/base/error.h"

namespace qkv {

Tensor sinusoidal_positions(int64_t n, int64_t d) {
  check_size("[positions] width", d);
  if (n < 0) throw ConfigError("[positions] the number of positions must not be negative");
  Tensor table = Tensor::empty({n, d});
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t c = 0; c < d; ++c) {
      const double rate = std::pow(10000.0, -static_cast<double>(c - c % 2) / static_cast<double>(d));
      const double angle = static_cast<double>(i) * rate;
      table.f32()[i * d + c] = static_cast<float>(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  return table;
}

LearnedPositions::LearnedPositions(int64_t longest, int64_t width, Rng& rng, double stddev) {
  check_size("[positions] longest sequence", longest);
  check_size("[positions] width", width);
  table_ = parameter(Tensor::randn({longest, width}, rng, stddev));
}

Tensor LearnedPositions::forward(std::span<const int64_t> positions) const {
  for (int64_t p : positions) {
    if (p < 0 || p >= longest()) {
      throw ShapeError("[positions] position " + std::to_string(p) + " in a model that knows " +
                       std::to_string(longest()) + "; shorten the input");
    }
  }
  return embedding(table_, positions);
}

std::vector<double> alibi_slopes(int64_t heads) {
  check_size("[alibi] heads", heads);
  std::vector<double> slopes;
  for (int64_t h = 1; h <= heads; ++h) {
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(h) / static_cast<double>(heads)));
  }
  return slopes;
}

Tensor alibi_bias(int64_t heads, int64_t Lq, int64_t Lk, int64_t offset) {
  const std::vector<double> slopes = alibi_slopes(heads);
  Tensor bias = Tensor::empty({heads, Lq, Lk});
  float* out = bias.f32();
  for (double slope : slopes) {
    for (int64_t i = 0; i < Lq; ++i) {
      for (int64_t j = 0; j < Lk; ++j)
        *out++ = static_cast<float>(-slope * static_cast<double>(std::abs(i + offset - j)));
    }
  }
  return bias;
}

}  // namespace qkv
