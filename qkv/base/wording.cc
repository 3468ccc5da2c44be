// Nearest names by edit distance, and numbers in running text.
#include "qkv/base/wording.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "qkv/base/utf8.h"

namespace qkv {
namespace {

/// How many letters are missing, added, wrong or swapped with their neighbour.
size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::string nearest_name(std::string_view word, const std::vector<std::string>& names) {
  constexpr size_t kLongest = 100;  // nobody types more by mistake
  constexpr size_t kBeginning = 2;  // letters that say which name is meant
  if (word.empty() || word.size() > kLongest) return "";
  const std::string wanted = ascii_lower(word);
  std::string best;
  size_t least = kLongest;
  for (const std::string& name : names) {
    if (name.size() > kLongest) continue;
    const std::string candidate = ascii_lower(name);
    const bool begun = wanted.size() >= kBeginning && candidate.starts_with(wanted);
    const size_t away = begun ? 0 : distance(wanted, candidate);
    if (away > std::max(wanted.size(), candidate.size()) / 3 || away >= least) continue;
    best = name;
    least = away;
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names) {
  const std::string name = nearest_name(word, names);
  return name.empty() ? "" : " (did you mean '" + name + "'?)";
}

std::string plain_number(double value) {
  constexpr double kSmallest = 1e-9, kLargest = 1e16, kFirstComma = 1e4;
  char text[48];
  const double size = std::abs(value);
  if (size != 0 && !(size >= kSmallest && size < kLargest)) {
    std::snprintf(text, sizeof text, "%.10g", value);
    return text;
  }
  // As few decimals as tell it from every other number.
  for (int decimals = 0; decimals < 26; ++decimals) {
    std::snprintf(text, sizeof text, "%.*f", decimals, value);
    if (std::strtod(text, nullptr) == value) break;
  }
  std::string out = text;
  if (size < kFirstComma) return out;
  const size_t first = out[0] == '-' ? 1 : 0;
  for (size_t at = std::min(out.find('.'), out.size()); at > first + 3;) out.insert(at -= 3, ",");
  return out;
}

std::string range_text(const std::string& kind, double low, double high) {
  const bool from = std::isfinite(low), to = std::isfinite(high);
  if (from && to) return kind + " between " + plain_number(low) + " and " + plain_number(high);
  return from ? kind + " of at least " + plain_number(low) : to ? kind + " of at most " + plain_number(high) : kind;
}

}  // namespace qkv
