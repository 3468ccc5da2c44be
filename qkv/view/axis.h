// Axes: round tick values, and the line between values and positions.
#pragma once

#include <vector>

namespace qkv {

/// Multiples of 1, 2 or 5 times a power of ten inside [low, high], about `count` of them, ends included when round.
std::vector<double> linear_ticks(double low, double high, int count);
/// Powers of ten inside [low, high] (0 < low), with 2 and 5 between them when they span less than 2.5 decades.
std::vector<double> log_ticks(double low, double high);

}  // namespace qkv
