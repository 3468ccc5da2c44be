// Heat maps of attention weights and scores: PNG, SVG, CSV and terminal from one description.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "qkv/figures/figures.h"
#include "qkv/view/drawing.h"
#include "qkv/view/terminal.h"

namespace qkv {

/// Throws ShapeError when there is no cell or a list does not fit rows and columns.
void check_map(const HeatMap& map);

/// Values as positions on the colour map.
class Shades {
 public:
  explicit Shades(const HeatMap& map);
  double low() const { return low_; }
  double high() const { return high_; }
  /// 0 … 1, or nothing for a hidden cell.
  std::optional<double> at(int64_t row, int64_t column) const;

 private:
  const HeatMap& map_;
  double low_ = 0, high_ = 1;
  std::vector<double> row_high_;  // for MapScale::kRow
};

/// A sentence about attention weights: the mean of the rows' largest weights, their mean entropy as a share of the
/// possible, and the number of masked cells.
std::string describe_weights(const HeatMap& map);

/// The map with labels, axis titles, colour bar and caption. Cells are a whole number of pixels; past 1,200 rows or
/// columns the largest of k x k cells is shown and the caption says so.
Drawing draw_heatmap(const HeatMap& map);
/// Where draw_heatmap puts the cells, in the drawing's own pixels.
Box heatmap_cells(const HeatMap& map);
/// Small multiples: maps under their titles, `columns` to a row, one colour bar for all where their scales are equal.
Drawing draw_heatmaps(const std::string& title, const std::vector<HeatMap>& maps, int columns,
                      const std::string& caption = "");
/// One map alone under the title and with the caption, several as small multiples.
Drawing draw_maps(const Maps& maps);

/// First row: column labels; first column: row labels; hidden cells are spelled "masked".
std::string heatmap_csv(const HeatMap& map);
/// Several maps in one table: map, row, row label, column, column label, value.
std::string heatmaps_csv(const std::vector<HeatMap>& maps);

/// By extension: .png, .svg or .csv. Throws ConfigError for any other, IoError when it cannot be written.
void save_heatmap(const HeatMap& map, const std::string& path);
void save_heatmaps(const std::string& title, const std::vector<HeatMap>& maps, int columns, const std::string& path);

/// The map as lines of text no wider than the terminal: coloured cells, or shades of blocks, or ASCII.
std::string terminal_heatmap(const HeatMap& map, const Terminal& terminal);

}  // namespace qkv
