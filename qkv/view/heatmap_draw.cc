// Heat maps on a canvas: layout first, then strokes.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "qkv/base/error.h"
#include "qkv/view/axis.h"
#include "qkv/view/canvas.h"
#include "qkv/view/heatmap.h"
#include "qkv/view/text.h"

namespace qkv {
namespace {

constexpr double kMargin = 16;
constexpr double kLabelSize = 12;
constexpr double kLabelLimit = 96;
constexpr double kLabelPitch = 14;   // least distance of two labels
constexpr int64_t kMaxCells = 1200;  // a side; beyond, cells are pooled
constexpr int64_t kMaxVectorCells = 1600;
constexpr double kBarWidth = 14;

enum class Turn { kFlat, kSlanted, kUpright };

// How large a map is drawn; small multiples use less.
struct MapSize {
  double side = 560;  // the longer side, at most
  double cell = 36;   // a cell, at most
  bool bar = true;
  bool axis_titles = true;
};

// One map with everything measured, ready to be drawn.
struct MapLayout {
  HeatMap map;
  int64_t pool = 1, rows = 0, columns = 0;  // after pooling
  double cell_w = 0, cell_h = 0;
  int64_t row_step = 1, column_step = 1;
  Turn turn = Turn::kFlat;
  Box cells;
  double width = 0, height = 0;
  double column_title_y = 0, caption_y = 0;
  bool bar = true, axis_titles = true;
  std::string caption;
};

std::string map_label(const std::vector<std::string>& labels, int64_t i) {
  return labels.empty() ? std::to_string(i) : visible_token(labels[static_cast<size_t>(i)]);
}

TextStyle label_style(double across, double down, double angle = 0) {
  return {.size = kLabelSize, .mono = true, .across = across, .down = down, .angle = angle, .limit = kLabelLimit};
}
TextStyle axis_style(double angle = 0) { return {.size = 12, .color = kMuted, .across = 0.5, .angle = angle}; }
TextStyle title_style(double wrap) { return {.size = 15, .bold = true, .wrap = wrap}; }
TextStyle caption_style(double wrap) { return {.size = 12, .color = kMuted, .wrap = wrap}; }

// Every 1st, 2nd, 5th, 10th, … label, whatever leaves them room.
int64_t label_step(double cell) {
  for (int64_t decade = 1;; decade *= 10) {
    for (const int64_t factor : {1, 2, 5}) {
      if (static_cast<double>(decade * factor) * cell >= kLabelPitch) return decade * factor;
    }
  }
}

double widest_label(const std::vector<std::string>& labels, int64_t count, int64_t step) {
  double widest = 0;
  for (int64_t i = 0; i < count; i += step) {
    widest = std::max(widest, measure_text(map_label(labels, i), label_style(0, 0)).w);
  }
  return widest;
}

// Whole pixels per cell; a map of one row stays visible.
void choose_cells(MapLayout& layout, const MapSize& size) {
  const int64_t longest = std::max(layout.map.rows, layout.map.columns);
  layout.pool = (longest + kMaxCells - 1) / kMaxCells;
  layout.rows = (layout.map.rows + layout.pool - 1) / layout.pool;
  layout.columns = (layout.map.columns + layout.pool - 1) / layout.pool;
  const auto side = static_cast<double>(std::max(layout.rows, layout.columns));
  const double cell = std::clamp(std::floor(size.side / side), 1.0, size.cell);
  layout.cell_w = std::max(cell, std::ceil(20 / static_cast<double>(layout.columns)));
  layout.cell_h = std::max(cell, std::ceil(20 / static_cast<double>(layout.rows)));
  if (layout.map.numbers && side <= 24) layout.cell_w = layout.cell_h = std::max(cell, 38.0);
}

MapLayout lay_out(const HeatMap& map, const MapSize& size) {
  check_map(map);
  MapLayout layout;
  layout.map = map;
  layout.bar = size.bar;
  layout.axis_titles = size.axis_titles;
  choose_cells(layout, size);
  layout.row_step = label_step(layout.cell_h) * layout.pool;
  layout.column_step = label_step(layout.cell_w) * layout.pool;
  const double map_w = layout.cell_w * static_cast<double>(layout.columns);
  const double map_h = layout.cell_h * static_cast<double>(layout.rows);
  const double row_labels = widest_label(map.row_labels, map.rows, layout.row_step);
  const double column_labels = widest_label(map.column_labels, map.columns, layout.column_step);
  const auto pitch_of = [&layout](int64_t cells) { return layout.cell_w * static_cast<double>(cells); };
  double pitch = pitch_of(layout.column_step / layout.pool);
  if (map.column_labels.empty() && column_labels > pitch - 6) {
    // Plain numbers are better fewer than turned.
    layout.column_step = label_step(layout.cell_w * kLabelPitch / (column_labels + 6)) * layout.pool;
    pitch = pitch_of(layout.column_step / layout.pool);
  }
  layout.turn = column_labels <= pitch - 3 ? Turn::kFlat : pitch >= 20 ? Turn::kSlanted : Turn::kUpright;
  const double label_h = layout.turn == Turn::kFlat      ? kLabelSize + 6
                         : layout.turn == Turn::kSlanted ? (column_labels + kLabelSize) * 0.7072 + 6
                                                         : column_labels + 8;
  const double overhang = layout.turn == Turn::kSlanted ? std::max(0.0, (column_labels + 8) * 0.7072 - pitch / 2) : 0;
  const double bar = layout.bar ? kBarWidth + 64 : 0;

  layout.cells.x = kMargin + (layout.axis_titles ? 22 : 0) + row_labels + 8;
  layout.width =
      std::ceil(std::max(layout.cells.x + map_w + std::max(overhang, layout.bar ? 20 + bar : 0) + kMargin, 160.0));
  const double wrap = layout.width - 2 * kMargin;
  layout.cells.y = kMargin;
  if (!map.title.empty()) layout.cells.y += measure_text(map.title, title_style(wrap)).h + 8;
  layout.column_title_y = layout.cells.y;
  if (layout.axis_titles) layout.cells.y += 20;
  layout.cells.y += label_h;
  layout.cells = {std::ceil(layout.cells.x), std::ceil(layout.cells.y), map_w, map_h};
  layout.caption = map.caption;
  if (layout.pool > 1) {
    const std::string k = std::to_string(layout.pool);
    layout.caption +=
        std::string(layout.caption.empty() ? "" : " ") + "Each dot is the largest of " + k + " × " + k + " cells.";
  }
  layout.caption_y = layout.cells.y + std::max(map_h, layout.bar ? 120.0 : 0.0) + 12;
  layout.height =
      layout.caption_y + (layout.caption.empty() ? 0 : measure_text(layout.caption, caption_style(wrap)).h + 4);
  layout.height = std::ceil(layout.height + kMargin - 8);
  return layout;
}

const ColorMap& colors_of(const HeatMap& map) {
  return map.scale == MapScale::kCentered ? diverging_map() : sequential_map();
}

// The shade of one drawn cell: itself, or the strongest of pool x pool cells; nothing when all are hidden.
std::optional<double> pooled_shade(const Shades& shades, const MapLayout& layout, int64_t row, int64_t column) {
  if (layout.pool == 1) return shades.at(row, column);
  const double middle = layout.map.scale == MapScale::kCentered ? 0.5 : 0;
  std::optional<double> best;
  for (int64_t r = row * layout.pool; r < std::min(layout.map.rows, (row + 1) * layout.pool); ++r) {
    for (int64_t c = column * layout.pool; c < std::min(layout.map.columns, (column + 1) * layout.pool); ++c) {
      const std::optional<double> shade = shades.at(r, c);
      if (shade && (!best || std::abs(*shade - middle) > std::abs(*best - middle))) best = shade;
    }
  }
  return best;
}

void draw_cells(Canvas& canvas, const MapLayout& layout) {
  const Shades shades(layout.map);
  const ColorMap& colors = colors_of(layout.map);
  std::vector<Rgb> pixels;
  std::vector<uint8_t> shown;
  for (int64_t r = 0; r < layout.rows; ++r) {
    for (int64_t c = 0; c < layout.columns; ++c) {
      const std::optional<double> shade = pooled_shade(shades, layout, r, c);
      pixels.push_back(color_at(colors, shade.value_or(0)));
      shown.push_back(shade ? 1 : 0);
    }
  }
  // The hatching lies under the whole map, so hidden cells need no drawing of their own.
  if (std::find(shown.begin(), shown.end(), 0) != shown.end()) canvas.hatch(layout.cells);
  if (layout.rows * layout.columns > kMaxVectorCells) {
    canvas.image(layout.cells, {static_cast<int>(layout.rows), static_cast<int>(layout.columns), pixels, shown});
    return;
  }
  for (int64_t r = 0, i = 0; r < layout.rows; ++r) {
    for (int64_t c = 0; c < layout.columns; ++c, ++i) {
      if (shown[static_cast<size_t>(i)] == 0) continue;
      canvas.fill({layout.cells.x + static_cast<double>(c) * layout.cell_w,
                   layout.cells.y + static_cast<double>(r) * layout.cell_h, layout.cell_w, layout.cell_h},
                  pixels[static_cast<size_t>(i)]);
    }
  }
}

void draw_grid(Canvas& canvas, const MapLayout& layout) {
  const Box& box = layout.cells;
  const LineStyle thin{.color = kGrid, .width = 1, .alpha = 0.9};
  for (int64_t c = 1; layout.cell_w >= 12 && c < layout.columns; ++c) {
    const double x = box.x + static_cast<double>(c) * layout.cell_w;
    canvas.line({x, box.y}, {x, box.y + box.h}, thin);
  }
  for (int64_t r = 1; layout.cell_h >= 12 && r < layout.rows; ++r) {
    const double y = box.y + static_cast<double>(r) * layout.cell_h;
    canvas.line({box.x, y}, {box.x + box.w, y}, thin);
  }
  canvas.frame(box, {.color = kAxis, .width = 1});
}

// The same number of decimals from cell to cell.
std::string cell_number(double value) {
  if (!std::isfinite(value)) return format_number(value);
  char buffer[32];
  const double size = std::abs(value);
  std::snprintf(buffer, sizeof(buffer), "%.*f", size < 9.995 ? 2 : size < 99.95 ? 1 : 0, value);
  return size < 1e5 ? buffer : format_number(value, 2);
}

void draw_numbers(Canvas& canvas, const MapLayout& layout) {
  if (!layout.map.numbers || layout.cell_w < 36 || layout.pool > 1) return;
  const Shades shades(layout.map);
  for (int64_t r = 0; r < layout.rows; ++r) {
    for (int64_t c = 0; c < layout.columns; ++c) {
      const std::optional<double> shade = shades.at(r, c);
      if (!shade) continue;
      const Rgb under = color_at(colors_of(layout.map), *shade);
      const Rgb ink = contrast(kInk, under) >= contrast(kPaper, under) ? kInk : kPaper;
      canvas.text({layout.cells.x + (static_cast<double>(c) + 0.5) * layout.cell_w,
                   layout.cells.y + (static_cast<double>(r) + 0.5) * layout.cell_h},
                  cell_number(layout.map.values[static_cast<size_t>(r * layout.columns + c)]),
                  {.size = 11, .color = ink, .across = 0.5, .down = 0.5});
    }
  }
}

void draw_labels(Canvas& canvas, const MapLayout& layout) {
  const Box& box = layout.cells;
  const double pool = static_cast<double>(layout.pool);
  for (int64_t r = 0; r < layout.map.rows; r += layout.row_step) {
    const double y = box.y + (std::floor(static_cast<double>(r) / pool) + 0.5) * layout.cell_h;
    canvas.text({box.x - 7, y}, map_label(layout.map.row_labels, r), label_style(1, 0.5));
    if (layout.row_step > 1) canvas.line({box.x - 4, y}, {box.x, y}, {.color = kAxis});
  }
  for (int64_t c = 0; c < layout.map.columns; c += layout.column_step) {
    const double x = box.x + (std::floor(static_cast<double>(c) / pool) + 0.5) * layout.cell_w;
    const std::string text = map_label(layout.map.column_labels, c);
    if (layout.turn == Turn::kFlat) canvas.text({x, box.y - 5}, text, label_style(0.5, 1));
    if (layout.turn == Turn::kSlanted) canvas.text({x, box.y - 6}, text, label_style(0, 0.5, 45));
    if (layout.turn == Turn::kUpright) canvas.text({x, box.y - 6}, text, label_style(0, 0.5, 90));
    if (layout.column_step > 1) canvas.line({x, box.y - 4}, {x, box.y}, {.color = kAxis});
  }
}

// Colours from bottom to top with ticks at round values; `box` is the coloured part.
void draw_bar(Canvas& canvas, const Box& box, const HeatMap& map) {
  const Shades shades(map);
  const bool by_row = map.scale == MapScale::kRow && !map.range;
  const ColorMap& colors = colors_of(map);
  std::vector<Rgb> pixels(colors.rbegin(), colors.rend());
  canvas.image(box, {256, 1, pixels, {}});
  canvas.frame(box, {.color = kAxis, .width = 1});
  const double low = by_row ? 0 : shades.low(), high = by_row ? 1 : shades.high();
  for (const double tick : linear_ticks(low, high, box.h < 100 ? 3 : 6)) {
    const double y = box.y + box.h * (1 - (tick - low) / (high - low));
    canvas.line({box.x + box.w, y}, {box.x + box.w + 4, y}, {.color = kAxis});
    const std::string text = by_row ? format_number(100 * tick, 3) + "%" : format_number(tick, 3);
    canvas.text({box.x + box.w + 7, y}, text, {.size = 11, .color = kMuted, .down = 0.5});
  }
  canvas.text({box.x + box.w + 46, box.y + box.h / 2}, by_row ? map.value_title + " / row's largest" : map.value_title,
              {.size = 11, .color = kMuted, .across = 0.5, .angle = 90, .limit = 200});
}

void draw_map(Canvas& canvas, const MapLayout& layout) {
  const double wrap = layout.width - 2 * kMargin;
  const Box& box = layout.cells;
  canvas.text({kMargin, kMargin - 2}, layout.map.title, title_style(wrap));
  draw_cells(canvas, layout);
  draw_grid(canvas, layout);
  draw_numbers(canvas, layout);
  draw_labels(canvas, layout);
  if (layout.axis_titles) {
    canvas.text({box.x + box.w / 2, layout.column_title_y}, layout.map.column_title, axis_style());
    canvas.text({kMargin, box.y + box.h / 2}, layout.map.row_title, axis_style(90));
  }
  if (layout.bar) {
    draw_bar(canvas, {box.x + box.w + 24, box.y, kBarWidth, std::clamp(box.h, 96.0, 240.0)}, layout.map);
  }
  canvas.text({kMargin, layout.caption_y}, layout.caption, caption_style(wrap));
}

Drawing as_drawing(MapLayout layout) {
  const auto shared = std::make_shared<const MapLayout>(std::move(layout));
  std::string description = shared->map.title;
  if (!shared->caption.empty()) description += (description.empty() ? "" : ". ") + shared->caption;
  return {shared->width, shared->height, [shared](Canvas& canvas) { draw_map(canvas, *shared); }, description};
}

bool same_scale(const std::vector<HeatMap>& maps) {
  for (const HeatMap& map : maps) {
    const HeatMap& first = maps.front();
    const bool fixed = map.range || map.scale == MapScale::kUnit || map.scale == MapScale::kRow;
    if (!fixed || map.scale != first.scale || map.range != first.range || map.value_title != first.value_title) {
      return false;
    }
  }
  return true;
}

}  // namespace

Box heatmap_cells(const HeatMap& map) { return lay_out(map, {}).cells; }

Drawing draw_heatmap(const HeatMap& map) { return as_drawing(lay_out(map, {})); }

Drawing draw_heatmaps(const std::string& title, const std::vector<HeatMap>& maps, int columns,
                      const std::string& caption) {
  if (maps.empty()) throw ShapeError("[heat map] nothing to draw: no maps");
  if (maps.size() == 1) {
    HeatMap map = maps.front();
    if (map.title.empty()) map.title = title;
    if (map.caption.empty()) map.caption = caption;
    return draw_heatmap(map);
  }
  const bool shared_bar = same_scale(maps);
  const double side = std::clamp(1400.0 / std::clamp(columns, 1, 12), 140.0, 360.0);
  std::vector<Drawing> parts;
  for (const HeatMap& map : maps) {
    parts.push_back(
        as_drawing(lay_out(map, {.side = side, .cell = 24, .bar = !shared_bar, .axis_titles = columns <= 4})));
  }
  Drawing page = arrange(title, std::move(parts), columns, caption);
  if (!shared_bar) return page;
  Drawing with_bar{page.width + 110, std::max(page.height, 220.0), {}, page.description};
  HeatMap legend = maps.front();
  with_bar.draw = [page, legend = std::move(legend)](Canvas& canvas) {
    page.draw(canvas);
    const double top = 64, height = std::clamp(page.height - top - 40, 100.0, 240.0);
    draw_bar(canvas, {page.width + 12, top, kBarWidth, height}, legend);
  };
  return with_bar;
}

Drawing draw_maps(const Maps& m) {
  if (m.maps.size() != 1) return draw_heatmaps(m.title, m.maps, m.columns, m.caption);
  HeatMap map = m.maps[0];
  map.title = m.title;
  map.caption = m.caption;
  return draw_heatmap(map);
}

}  // namespace qkv
