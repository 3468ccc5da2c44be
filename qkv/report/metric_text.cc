// Labels and values of figures.
#include "qkv/report/metric_text.h"

#include <algorithm>

#include "qkv/figures/number.h"
#include "qkv/tasks/metrics.h"

namespace qkv {

std::string metric_label(const std::string& name) {
  std::string label = name;
  std::replace(label.begin(), label.end(), '_', ' ');
  return label;
}

std::string metric_text(const std::string& name, double value) {
  return metric_kind(name).share ? format_share(value) : format_number(value);
}

}  // namespace qkv
