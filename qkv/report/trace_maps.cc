// Traced attention as heat maps.
#include "qkv/report/trace_maps.h"

#include <algorithm>
#include <span>

#include "qkv/base/error.h"
#include "qkv/tasks/rollout.h"
#include "qkv/view/picture.h"
#include "qkv/view/text.h"

namespace qkv {
namespace {

HeatMap map_of(const TracedExample& example, const AttentionTrace& trace, int64_t head) {
  const bool decoding = example.rows_are_target(trace.site);
  HeatMap map;
  map.rows = trace.Lq;
  map.columns = trace.Lk;
  map.row_labels = example.row_tokens(trace);
  map.column_labels = example.column_tokens(trace);
  map.row_title = decoding ? "written" : "query";
  map.column_title = example.columns_are_target(trace.site) ? "written before" : "read";
  const Tensor weights = trace.scores({.b = 0, .h = head, .row_begin = 0, .row_end = trace.Lq});  // [Lq, Lk]
  map.values = weights.to_vector();
  if (trace.causal) {
    map.scale = MapScale::kRow;  // the first row has one key: beside its weight of 1 later rows would be blank
    map.hidden.resize(map.values.size());
    for (int64_t i = 0; i < map.rows; ++i) {
      for (int64_t j = i + 1; j < map.columns; ++j) map.hidden[static_cast<size_t>(i * map.columns + j)] = 1;
    }
  }
  return map;
}

// What one row of [tokens, tokens] weights gives the patches: the class token's, or the mean where there is none.
std::vector<float> patch_weights(const TracedPicture& picture, std::span<const float> weights, int64_t tokens) {
  const int64_t patches = picture.patch_rows * picture.patch_columns;
  if (picture.first_patch + patches > tokens) throw ConfigError("the attention does not cover the picture's patches");
  const int64_t rows = picture.first_patch > 0 ? 1 : tokens;
  std::vector<float> sum(static_cast<size_t>(patches));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t k = 0; k < patches; ++k) {
      sum[static_cast<size_t>(k)] +=
          weights[static_cast<size_t>(r * tokens + picture.first_patch + k)] / static_cast<float>(rows);
    }
  }
  return sum;
}

HeatMap patch_map(const TracedPicture& picture, std::span<const float> weights, int64_t tokens) {
  HeatMap map;
  map.rows = picture.patch_rows;
  map.columns = picture.patch_columns;
  map.row_title = "patches down";
  map.column_title = "patches across";
  map.values = patch_weights(picture, weights, tokens);
  map.range = {0.0, std::max<double>(1e-6, *std::max_element(map.values.begin(), map.values.end()))};
  return map;
}

std::vector<float> head_weights(const AttentionTrace& trace, int64_t head) {
  return trace.scores({.b = 0, .h = head, .row_begin = 0, .row_end = trace.Lq}).to_vector();  // [Lq, Lk]
}

/// Throws ConfigError with what there is of what was asked for.
[[noreturn]] void refuse(const std::vector<AttentionTrace>& attention, const TraceChoice& choice) {
  std::vector<std::string> sites;
  int64_t layers = 0, heads = 0;
  for (const AttentionTrace& trace : attention) {
    if (std::find(sites.begin(), sites.end(), trace.site) == sites.end()) sites.push_back(trace.site);
    if (!choice.site.empty() && choice.site != trace.site) continue;
    layers = std::max<int64_t>(layers, trace.layer + 1);
    if (choice.layer < 0 || choice.layer == trace.layer) heads = std::max<int64_t>(heads, trace.H);
  }
  if (layers == 0) throw ConfigError("--site: " + unknown_name("attention", choice.site, sites));
  const auto has = [](const std::string& option, int64_t asked, int64_t count, const std::string& what) {
    return ConfigError("--" + option + " " + std::to_string(asked) + ": there " + (count == 1 ? "is 1 " : "are ") +
                       (count == 1 ? what + ", number 0"
                                   : std::to_string(count) + " " + what + "s, 0 to " + std::to_string(count - 1)));
  };
  if (heads == 0) throw has("layer", choice.layer, layers, "layer");
  throw has("head", choice.head, heads, "head");
}

}  // namespace

std::vector<HeatMap> maps_of(const TracedExample& example, const TraceChoice& choice) {
  if (example.attention.empty()) throw ConfigError("this model has no attention to show");
  std::vector<HeatMap> maps;
  const bool any = choice.site.empty() && choice.layer < 0 && choice.head < 0;
  const bool summed = std::any_of(example.attention.begin(), example.attention.end(),
                                  [](const auto& t) { return t.site == "alignment"; });
  if (example.picture && any) {
    std::vector<const AttentionTrace*> all;
    for (const AttentionTrace& trace : example.attention) all.push_back(&trace);
    maps.push_back(patch_map(*example.picture, attention_rollout(all).to_vector(), example.attention[0].Lk));
    maps.back().title = "rollout";
  }
  const bool layers =
      std::any_of(example.attention.begin(), example.attention.end(), [](const auto& t) { return t.layer > 0; });
  for (const AttentionTrace& trace : example.attention) {
    if (any && summed && trace.site != "alignment") continue;
    if (!choice.site.empty() && choice.site != trace.site) continue;
    if (choice.layer >= 0 && choice.layer != trace.layer) continue;
    for (int64_t h = 0; h < trace.H; ++h) {
      if (choice.head >= 0 && choice.head != h) continue;
      HeatMap map =
          example.picture ? patch_map(*example.picture, head_weights(trace, h), trace.Lk) : map_of(example, trace, h);
      map.title = trace.site;
      if (layers && trace.site != "alignment") map.title += " layer " + std::to_string(trace.layer);
      if (trace.H > 1) map.title += " head " + std::to_string(h);
      maps.push_back(std::move(map));
    }
  }
  if (maps.empty()) refuse(example.attention, choice);
  return maps;
}

Drawing draw_picture_maps(const std::string& title, const TracedExample& example, const TraceChoice& choice) {
  if (!example.picture) throw ConfigError("there is no picture to lay maps over");
  const TracedPicture& p = *example.picture;
  const Raster picture = raster_of(p);
  std::vector<Tile> above{{"input", picture}}, layers;
  for (const HeatMap& map : maps_of(example, choice)) {
    const float most = *std::max_element(map.values.begin(), map.values.end());
    const bool rollout = map.title == "rollout";
    std::string name = map.title;
    if (name.starts_with("self ")) name.erase(0, 5);
    (rollout ? above : layers)
        .push_back({name + "\nlargest " + format_number(most, 2), overlay(picture, map.values, map.rows, map.columns)});
  }
  const int64_t heads = choice.head >= 0 ? 1 : example.attention[0].H;
  const int columns = static_cast<int>(std::clamp<int64_t>(heads, 2, 8));
  std::vector<Drawing> parts{draw_tiles("", above, columns), draw_tiles("", layers, columns)};
  const char* const who = p.first_patch > 0 ? "Where the class token looks" : "Where all patches look on average";
  Drawing page = arrange(title, std::move(parts), 1, who + std::string(", up to the largest weight of each tile."));
  page.photographs = true;
  return page;
}

}  // namespace qkv
