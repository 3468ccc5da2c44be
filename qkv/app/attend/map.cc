// Heat maps of the attend command's weights.
#include "qkv/app/attend/map.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "qkv/base/error.h"
#include "qkv/view/heatmap.h"
#include "qkv/view/text.h"

namespace qkv::app {
namespace {

constexpr int64_t kCellsAlone = 1024;  // a side of a single map
constexpr int64_t kCellsShared = 256;  // a side of one of several
constexpr int64_t kScoresAtOnce = int64_t{1} << 20;

bool ends_with(const std::string& text, const std::string& ending) {
  return text.size() >= ending.size() && text.compare(text.size() - ending.size(), ending.size(), ending) == 0;
}

// Rows [begin, end) of the weights and of which keys are hidden, folded into the map's cells.
void fold_rows(const AttendResult& r, ScoreWindow window, int64_t pool, HeatMap& map) {
  window.stage = ScoreStage::weights;
  const Tensor weights = attention_scores(r.q, r.k, r.rule, window);  // [rows, Lk]
  window.stage = ScoreStage::biased;
  const Tensor scores = attention_scores(r.q, r.k, r.rule, window);  // [rows, Lk]
  const int64_t Lk = r.k.dim(2);
  for (int64_t i = window.row_begin; i < window.row_end; ++i) {
    for (int64_t j = 0; j < Lk; ++j) {
      const auto from = static_cast<size_t>((i - window.row_begin) * Lk + j);
      const auto cell = static_cast<size_t>(i / pool * map.columns + j / pool);
      if (scores.f32()[from] == -HUGE_VALF) continue;
      map.hidden[cell] = 0;
      map.values[cell] = std::max(map.values[cell], weights.f32()[from]);
    }
  }
}

std::vector<std::string> block_labels(int64_t cells, int64_t pool) {
  std::vector<std::string> labels;
  for (int64_t i = 0; i < cells && pool > 1; ++i) labels.push_back(std::to_string(i * pool));
  return labels;
}

HeatMap weight_map(const AttendResult& r, int64_t b, int64_t h, int64_t pool) {
  const int64_t Lq = r.q.dim(2), Lk = r.k.dim(2);
  HeatMap map;
  map.title = "batch " + std::to_string(b) + ", head " + std::to_string(h);
  map.rows = (Lq + pool - 1) / pool;
  map.columns = (Lk + pool - 1) / pool;
  map.row_labels = block_labels(map.rows, pool);
  map.column_labels = block_labels(map.columns, pool);
  map.values.assign(static_cast<size_t>(map.rows * map.columns), 0.0f);
  map.hidden.assign(map.values.size(), 1);
  const int64_t rows = std::clamp<int64_t>(kScoresAtOnce / Lk, 1, Lq);
  for (int64_t i = 0; i < Lq; i += rows) {
    fold_rows(r, {.b = b, .h = h, .row_begin = i, .row_end = std::min(Lq, i + rows)}, pool, map);
  }
  return map;
}

// The weight of the darkest colour. A causal map's first row always holds a weight of 1, beside which long rows
// would look empty; so where a tenth of the rows are far above the others, those are cut off.
double darkest(const std::vector<HeatMap>& maps, double& largest) {
  std::vector<float> rows;  // the largest weight of each
  for (const HeatMap& map : maps) {
    for (auto at = map.values.begin(); at != map.values.end(); at += map.columns) {
      rows.push_back(*std::max_element(at, at + map.columns));
    }
  }
  std::sort(rows.begin(), rows.end());
  largest = rows.back();
  const double usual = rows[(rows.size() - 1) * 9 / 10];
  if (largest <= 0) return 1;
  return usual > 0 && largest > 2 * usual ? usual : largest;
}

std::string caption_of(int64_t left_out, int64_t pool, double cut) {
  std::string text = "Rows are queries, columns keys; hatched cells are masked.";
  if (pool > 1) {
    const std::string k = std::to_string(pool);
    text += " Each cell is the largest of " + k + " × " + k + " weights.";
  }
  if (cut > 0) text += " Weights above " + format_number(cut, 3) + " have the darkest colour.";
  if (left_out > 0) text += " Left out: " + std::to_string(left_out) + " more maps.";
  return text;
}

Drawing drawing_of(const AttendResult& r) {
  const int64_t H = r.q.dim(1), all = r.q.dim(0) * H, shown = std::min(all, kMapPanels);
  const int64_t longest = std::max(r.q.dim(2), r.k.dim(2)), cells = all == 1 ? kCellsAlone : kCellsShared;
  const int64_t pool = (longest + cells - 1) / cells;
  std::vector<HeatMap> maps;
  for (int64_t i = 0; i < shown; ++i) maps.push_back(weight_map(r, i / H, i % H, pool));
  double largest = 0;
  const double high = darkest(maps, largest);
  for (HeatMap& map : maps) map.range = {0.0, high};
  const std::string caption = caption_of(all - shown, pool, high < largest ? high : 0);
  if (all == 1) {
    maps.front().title = "Attention weights";
    maps.front().caption = caption;
    return draw_heatmap(maps.front());
  }
  const int columns = static_cast<int>(std::min<int64_t>(shown, H <= 6 ? H : 4));
  return draw_heatmaps("Attention weights", maps, std::max(columns, H == 1 ? 4 : 1), caption);
}

}  // namespace

void check_map_path(const std::string& path) {
  if (!ends_with(path, ".png") && !ends_with(path, ".svg")) {
    throw ConfigError("--map " + path + ": expected a name that ends in .png or .svg");
  }
  require_pictures(path);
}

Bytes draw_map(const AttendResult& result, const std::string& path) {
  check_map_path(path);
  const Drawing drawing = drawing_of(result);
  if (ends_with(path, ".png")) return to_png(drawing);
  const std::string svg = to_svg(drawing);
  const auto bytes = bytes_of(svg);
  return {bytes.begin(), bytes.end()};
}

}  // namespace qkv::app
