// Words that errors share: the name that was probably meant, and ranges as people write them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qkv {

/// The name that `word` most likely stands for: one it begins, or one a third of its letters away at most (letters
/// missing, added, wrong or swapped); "" when no name is near.
std::string nearest_name(std::string_view word, const std::vector<std::string>& names);
/// " (did you mean 'train'?)", or "" when no name is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names);

/// A number with no exponent where people write none, and with commas: 0.000001, 65,536, 1e+20.
std::string plain_number(double value);
/// "a whole number between 1 and 65,536", "a number of at least 0"; `kind` alone where both limits are infinite.
std::string range_text(const std::string& kind, double low, double high);

}  // namespace qkv
