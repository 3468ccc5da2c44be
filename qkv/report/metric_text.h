// The text of figures: labels and values as they are read.
#pragma once

#include <string>

#include "qkv/base/settings.h"

namespace qkv {

/// "exact_match" → "exact match"; "bleu" → "BLEU".
std::string metric_label(const std::string& name);
/// The same of a run with these settings: "longer_exact_match" → "exact match, lengths 21 to 40".
std::string metric_label(const std::string& name, const Settings& settings);
/// 0.9915 → "99.15%" for shares, 8.2849 → "8.28" for BLEU, else the number.
std::string metric_text(const std::string& name, double value);

}  // namespace qkv
