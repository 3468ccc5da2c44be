// The text of figures: labels and values as they are read.
#pragma once

#include <string>

namespace qkv {

/// "exact_match" → "exact match".
std::string metric_label(const std::string& name);
/// 0.9915 → "99.15%" for shares, else the number.
std::string metric_text(const std::string& name, double value);

}  // namespace qkv
