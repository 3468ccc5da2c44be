// The figures of evaluations: named values, and one table that says how each is read.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace qkv {

/// Named figures in the order they are shown.
using Metrics = std::vector<std::pair<std::string, double>>;

/// The figure of that name, or NaN.
double metric_of(const Metrics& metrics, std::string_view name);

/// How a figure is read.
struct MetricKind {
  std::string_view name;          // in metrics.jsonl and result.json
  bool share = false;             // of 1, shown as a percentage
  bool higher_is_better = false;  // else lower
};

/// By its name, or by what follows the name of one of several test sets ("test_2016_bleu" → bleu). A figure that no
/// task declares is a plain number of which less is better. A new figure is one row of the table.
const MetricKind& metric_kind(std::string_view name);

}  // namespace qkv
