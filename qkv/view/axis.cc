// Round ticks.
#include "qkv/view/axis.h"

#include <algorithm>
#include <cmath>

namespace qkv {

std::vector<double> linear_ticks(double low, double high, int count) {
  std::vector<double> ticks;
  if (!(low < high) || !std::isfinite(high - low) || count < 1) return ticks;
  const double rough = (high - low) / count;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double unit = rough / power;
  const double step = power * (unit < 1.5 ? 1 : unit < 3.5 ? 2 : unit < 7.5 ? 5 : 10);
  const double slack = 1e-9 * (high - low);
  for (double k = std::ceil((low - slack) / step); k * step <= high + slack; ++k) {
    // 0.1 * 3 is not 0.3: divide by the inverse where that is whole.
    const double tick = step < 1 ? k / std::round(1 / step) : k * step;
    ticks.push_back(std::abs(tick) < slack                                           ? 0.0
                    : (step < 1 && std::abs(1 / step - std::round(1 / step)) > 1e-6) ? k * step
                                                                                     : tick);
    if (ticks.size() > 100) break;
  }
  return ticks;
}

std::vector<double> log_ticks(double low, double high) {
  std::vector<double> ticks;
  if (!(low > 0) || !(low < high) || !std::isfinite(high)) return ticks;
  const int first = static_cast<int>(std::floor(std::log10(low) + 1e-9)),
            last = static_cast<int>(std::ceil(std::log10(high) - 1e-9));
  const bool between = high / low < 300;
  const int stride = std::max(1, (last - first) / 8);
  for (int e = first; e <= last; ++e) {
    if ((e - first) % stride != 0) continue;
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = factor * std::pow(10.0, e);
      if (factor > 1 && !between) continue;
      if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) ticks.push_back(tick);
    }
  }
  return ticks;
}

}  // namespace qkv
