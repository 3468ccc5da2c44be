// Traced attention as heat maps.
#include "qkv/train/trace_maps.h"

#include <algorithm>

#include "qkv/base/error.h"

namespace qkv {
namespace {

std::vector<std::string> first_labels(const std::vector<std::string>& tokens, int64_t n) {
  std::vector<std::string> labels(tokens.begin(),
                                  tokens.begin() + std::min<int64_t>(n, static_cast<int64_t>(tokens.size())));
  while (static_cast<int64_t>(labels.size()) < n) labels.push_back(std::to_string(labels.size()));
  return labels;
}

HeatMap map_of(const TracedExample& example, const AttentionTrace& trace, int64_t head) {
  const bool decoding = trace.site == "cross" || trace.site == "decoder" || trace.site == "alignment";
  const std::vector<std::string>& queries = decoding && example.target_rows ? example.target : example.source;
  const std::vector<std::string>& keys = trace.site == "decoder" ? example.target : example.source;
  HeatMap map;
  map.rows = trace.Lq;
  map.columns = trace.Lk;
  map.row_labels = first_labels(queries, trace.Lq);
  map.column_labels = first_labels(keys, trace.Lk);
  map.row_title = decoding ? "written" : "query";
  map.column_title = trace.site == "decoder" ? "written before" : "read";
  const Tensor weights = trace.scores({.b = 0, .h = head, .row_begin = 0, .row_end = trace.Lq});  // [Lq, Lk]
  map.values = weights.to_vector();
  if (trace.causal) {
    map.hidden.resize(map.values.size());
    for (int64_t i = 0; i < map.rows; ++i) {
      for (int64_t j = i + 1; j < map.columns; ++j) map.hidden[static_cast<size_t>(i * map.columns + j)] = 1;
    }
  }
  return map;
}

}  // namespace

std::vector<HeatMap> maps_of(const TracedExample& example, const TraceChoice& choice) {
  if (example.attention.empty()) throw ConfigError("this model has no attention to show");
  std::vector<HeatMap> maps;
  std::string available;
  const bool any = choice.site.empty() && choice.layer < 0 && choice.head < 0;
  const bool summed = std::any_of(example.attention.begin(), example.attention.end(),
                                  [](const auto& t) { return t.site == "alignment"; });
  const bool layers =
      std::any_of(example.attention.begin(), example.attention.end(), [](const auto& t) { return t.layer > 0; });
  for (const AttentionTrace& trace : example.attention) {
    available += (available.empty() ? "" : ", ") + trace.site + " layer " + std::to_string(trace.layer) +
                 " heads 0 to " + std::to_string(trace.H - 1);
    if (any && summed && trace.site != "alignment") continue;
    if (!choice.site.empty() && choice.site != trace.site) continue;
    if (choice.layer >= 0 && choice.layer != trace.layer) continue;
    for (int64_t h = 0; h < trace.H; ++h) {
      if (choice.head >= 0 && choice.head != h) continue;
      HeatMap map = map_of(example, trace, h);
      map.title = trace.site;
      if (layers && trace.site != "alignment") map.title += " layer " + std::to_string(trace.layer);
      if (trace.H > 1) map.title += " head " + std::to_string(h);
      maps.push_back(std::move(map));
    }
  }
  if (maps.empty()) throw ConfigError("no such attention in this model; there is: " + available);
  return maps;
}

}  // namespace qkv
