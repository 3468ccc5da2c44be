// Numbers as people read them.
#pragma once

#include <string>

namespace qkv {

/// Shortest form with at most `digits` significant digits: "0.25", "12000", "3.1e-07".
std::string format_number(double value, int digits = 4);
/// A share of 1 as a percentage: 0.9915 → "99.15%".
std::string format_share(double share, int digits = 4);

}  // namespace qkv
