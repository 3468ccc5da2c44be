// Labels and values of figures.
#include "qkv/report/metric_text.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "qkv/figures/number.h"
#include "qkv/tasks/metrics.h"

namespace qkv {

std::string metric_label(const std::string& name) {
  if (name == "bleu") return "BLEU";
  std::string label = name;
  std::replace(label.begin(), label.end(), '_', ' ');
  return label;
}

std::string metric_label(const std::string& name, const Settings& settings) {
  constexpr std::string_view kLonger = "longer_";
  if (!name.starts_with(kLonger) || !settings.has("max-length")) return metric_label(name);
  const int64_t trained = settings.get_integer("max-length");
  return metric_label(name.substr(kLonger.size())) + ", lengths " + std::to_string(trained + 1) + " to " +
         std::to_string(2 * trained);
}

std::string metric_text(const std::string& name, double value) {
  if (name != "bleu") return metric_kind(name).share ? format_share(value) : format_number(value);
  std::array<char, 32> text;
  const int n = std::snprintf(text.data(), text.size(), "%.2f", value);
  return {text.data(), static_cast<size_t>(n)};
}

}  // namespace qkv
