// What can be shown, as plain data: tables, heat maps, charts, pictures and the sections that hold them. view/ draws
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace qkv {

/// Cells are plain text. A column whose cells are all numbers (signs, units and % allowed) is aligned to the right.
/// Rows may be shorter than the header.
struct Table {
  std::string title = {};
  std::vector<std::string> header = {};
  std::vector<std::vector<std::string>> rows = {};
};

/// What the ends of the colour map stand for.
enum class MapScale {
  kUnit,     // 0 … 1: weights, comparable between maps
  kRow,      // 0 … the row's largest value
  kAuto,     // smallest … largest visible value
  kCentered  // -m … m with m the largest magnitude: scores, differences, lift
};

/// One value per cell, row-major: rows are queries, columns keys. A hidden (masked) cell is hatched, and so is NaN.
struct HeatMap {
  std::string title = {};
  std::string row_title = "query", column_title = "key", value_title = "weight";
  std::string caption = {};
  int64_t rows = 0, columns = 0;
  std::vector<float> values = {};                                // [rows, columns]
  std::vector<uint8_t> hidden = {};                              // [rows, columns], 1 = masked; empty: none
  std::vector<std::string> row_labels = {}, column_labels = {};  // any bytes; empty: 0, 1, 2, …
  MapScale scale = MapScale::kUnit;
  std::optional<std::pair<double, double>> range = {};  // overrides what the scale would choose
  bool numbers = false;                                 // the value inside each cell, where it fits
};

/// Several heat maps under one title, `columns` to a row.
struct Maps {
  std::string title = {};
  std::vector<HeatMap> maps = {};
  int columns = 2;
  std::string caption = {};
};

enum class Marks { kLine, kDots, kLineAndDots };

/// Points in the order they are joined. A NaN interrupts the line and is marked by a cross at the bottom; on a log
/// axis so is a value that is not positive.
struct Series {
  std::string name = {};
  std::vector<double> x = {}, y = {};
  std::vector<double> low = {}, high = {};  // a band around a line, error bars on dots; empty: none
  Marks marks = Marks::kLine;
  bool dashed = false;
  bool faint = false;  // raw values under a smoothed line
  int color = -1;      // one of the eight series colours; -1: the series' own number
};

struct Axis {
  std::string title = {};
  bool log = false;
  bool whole = false;                         // ticks at whole numbers only
  std::optional<double> low = {}, high = {};  // else from the data
};

/// A labelled line across the chart, at a value of x (vertical) or y.
struct Guide {
  double at = 0;
  std::string label = {};
  bool vertical = false;
};

struct Plot {
  std::string title = {}, caption = {};
  Axis x = {}, y = {};
  std::vector<Series> series = {};
  std::vector<Guide> guides = {};
  double width = 600, height = 300;  // whole width; height of the area between the axes
};

struct Bars {
  std::string name = {};
  std::vector<double> values = {};          // one per group
  std::vector<double> low = {}, high = {};  // error bars; empty: none
};

/// Groups of bars side by side, one bar per series.
struct BarChart {
  std::string title = {}, caption = {}, group_title = {};
  std::vector<std::string> groups = {};
  std::vector<Bars> series = {};
  Axis y = {};           // always includes zero, never logarithmic
  bool numbers = false;  // the value above each bar
  double width = 600, height = 260;
};

/// A picture as bytes [height, width, channels]: 1 channel is grey, 3 are colour.
struct Bitmap {
  int64_t width = 0, height = 0, channels = 1;
  std::vector<uint8_t> pixels = {};
};

/// Pictures with a line or two of text above each, `columns` to a row.
struct Gallery {
  std::vector<std::pair<std::string, Bitmap>> pictures = {};
  int columns = 8;
};

/// For each cell of a grid one small map of the whole grid, in the cell's place: how alike it is to every other.
struct SimilarityGrid {
  int64_t rows = 0, columns = 0;
  std::vector<float> values = {};  // [cells, cells], -1 … 1
};

/// Behind a line to click on, for what only some readers want.
struct FoldedTable {
  std::string summary = {};
  Table table = {};
};

/// A part of a report: a heading and its content. A string is a paragraph.
struct Section {
  std::string title = {};
  std::vector<std::variant<std::string, Table, FoldedTable, Maps, Gallery, SimilarityGrid>> parts = {};
};

}  // namespace qkv
