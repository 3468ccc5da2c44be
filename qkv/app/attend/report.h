// What the attend command tells about a result: statistics as JSON, and a short summary as text or JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "qkv/app/attend/attend.h"

namespace qkv::app {

/// Averages over the rows that see a key.
struct WeightSummary {
  int64_t rows = 0, empty_rows = 0;
  double entropy = 0;        // nats
  double max_weight = 0;     // mean of the largest weight
  double mean_distance = 0;  // keys
};
WeightSummary summarise(const AttentionStatistics& stats);

/// {"shape": [B,H,Lq], "summary": {…}, "lse": [[[…]]], "entropy": …, "max_weight": …, "argmax": …,
/// "mean_distance": …}; an empty row's lse is null and its argmax -1.
std::string stats_json(const AttentionStatistics& stats);

/// The result's shapes, rule, statistics (when computed) and the files written.
struct AttendReport {
  const AttendRequest& request;
  const AttendResult& result;
  std::optional<WeightSummary> weights;
  std::vector<std::string> files;
};
std::string report_text(const AttendReport& report);
std::string report_json(const AttendReport& report);

}  // namespace qkv::app
