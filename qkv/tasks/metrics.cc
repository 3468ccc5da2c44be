// The table of figures.
#include "qkv/tasks/metrics.h"

#include <limits>

namespace qkv {
namespace {

constexpr MetricKind kNumber{};
constexpr MetricKind kKinds[] = {
    {"loss"},
    {"loss_per_word"},
    {"answer_loss"},
    {"perplexity"},
    {"bits_per_character"},
    {"bleu", false, true},
    {"accuracy", true, true},
    {"mirrored_accuracy", true, true},
    {"character_accuracy", true, true},
    {"longer_character_accuracy", true, true},
    {"exact_match", true, true},
    {"longer_exact_match", true, true},
};

}  // namespace

double metric_of(const Metrics& metrics, std::string_view name) {
  for (const auto& [key, value] : metrics) {
    if (key == name) return value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

const MetricKind& metric_kind(std::string_view name) {
  for (const MetricKind& kind : kKinds) {
    if (name == kind.name) return kind;
  }
  for (const MetricKind& kind : kKinds) {
    if (name.ends_with(std::string("_").append(kind.name))) return kind;
  }
  return kNumber;
}

}  // namespace qkv
