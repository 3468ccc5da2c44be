// Numbers as people read them.
#include "qkv/figures/number.h"

#include <cmath>
#include <cstdio>

namespace qkv {

std::string format_number(double value, int digits) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (value == 0) return "0";
  char buffer[64];
  const double magnitude = std::abs(value);
  // %g would write 12000 as 1.2e+04 with few digits; whole numbers stay whole.
  const bool whole = magnitude >= 1 && value == std::round(value);
  if (magnitude < 1e7 && (whole || magnitude >= std::pow(10.0, digits))) {
    std::snprintf(buffer, sizeof(buffer), "%.0f", value);
  } else {
    std::snprintf(buffer, sizeof(buffer), "%.*g", digits, value);
  }
  return buffer;
}

std::string format_share(double share, int digits) { return format_number(100 * share, digits) + "%"; }

}  // namespace qkv
