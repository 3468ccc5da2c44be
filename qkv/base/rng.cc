// Normal draws from the counter-based generator.
#include "qkv/base/rng.h"

#include <cmath>
#include <numbers>

namespace qkv {

double Rng::normal() {
  const double u = 1.0 - uniform();  // (0, 1]: the logarithm stays finite
  const double v = uniform();
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

}  // namespace qkv
