// Drawing the sections that tasks describe.
#include <variant>

#include "qkv/report/report.h"
#include "qkv/view/heatmap.h"
#include "qkv/view/picture.h"

namespace qkv {
namespace {

constexpr int64_t kCell = 3;  // pixels of a cell in a grid of grids
constexpr double kGridSide = 400;

Drawing draw_gallery(const Gallery& gallery) {
  std::vector<Tile> tiles;
  for (const auto& [title, picture] : gallery.pictures) tiles.push_back({title, raster_of(picture)});
  Drawing drawing = draw_tiles("", tiles, gallery.columns);
  drawing.photographs = true;
  return drawing;
}

Drawing draw_similarities(const SimilarityGrid& grid) {
  const int64_t cells = grid.rows * grid.columns;
  const int64_t inner_h = grid.rows * kCell + 1, inner_w = grid.columns * kCell + 1;
  Raster raster{.rows = grid.rows * inner_h, .columns = grid.columns * inner_w};
  raster.colors.assign(static_cast<size_t>(raster.rows * raster.columns), kPaper);
  for (int64_t y = 0; y < raster.rows; ++y) {
    for (int64_t x = 0; x < raster.columns; ++x) {
      const int64_t down = y % inner_h / kCell, across = x % inner_w / kCell;
      if (down >= grid.rows || across >= grid.columns) continue;  // the line between two small maps
      const int64_t a = y / inner_h * grid.columns + x / inner_w, b = down * grid.columns + across;
      const double t = 0.5 + 0.5 * static_cast<double>(grid.values[static_cast<size_t>(a * cells + b)]);
      raster.colors[static_cast<size_t>(y * raster.columns + x)] = color_at(sequential_map(), t);
    }
  }
  return draw_tiles("", {{"", std::move(raster)}}, 1, kGridSide);
}

struct PartWriter {
  Report& report;
  void operator()(const std::string& text) const { report.paragraph(text); }
  void operator()(const Table& table) const { report.table(table); }
  void operator()(const FoldedTable& folded) const { report.folded_table(folded.summary, folded.table); }
  void operator()(const Maps& maps) const { report.figure(draw_maps(maps)); }
  void operator()(const Gallery& gallery) const { report.figure(draw_gallery(gallery)); }
  void operator()(const SimilarityGrid& grid) const { report.figure(draw_similarities(grid)); }
};

}  // namespace

Report& Report::add(const Section& content) {
  section(content.title);
  for (const auto& part : content.parts) std::visit(PartWriter{*this}, part);
  return *this;
}

}  // namespace qkv
