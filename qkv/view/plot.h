// Line, dot and bar charts: PNG, SVG and terminal from one description.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "qkv/view/drawing.h"
#include "qkv/view/terminal.h"

namespace qkv {

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

/// Throws ShapeError when x, y, low and high of a series differ in length. Series without points are allowed.
Drawing draw_plot(const Plot& plot);
/// Where draw_plot puts the area between the axes, in the drawing's own pixels.
Box plot_area(const Plot& plot);
/// Columns: series, x, y, and low, high where there are any.
std::string plot_csv(const Plot& plot);
/// Lines of braille dots in colour, or one letter a series without; `rows` lines between the axes.
std::string terminal_plot(const Plot& plot, const Terminal& terminal, int rows = 12);

struct Bars {
  std::string name = {};
  std::vector<double> values = {};          // one a group
  std::vector<double> low = {}, high = {};  // error bars; empty: none
};

/// Groups of bars side by side, one bar a series.
struct BarChart {
  std::string title = {}, caption = {}, group_title = {};
  std::vector<std::string> groups = {};
  std::vector<Bars> series = {};
  Axis y = {};           // always includes zero, never logarithmic
  bool numbers = false;  // the value above each bar
  double width = 600, height = 260;
};

/// Throws ShapeError when a series does not have one value a group.
Drawing draw_bars(const BarChart& chart);
Box bars_area(const BarChart& chart);

}  // namespace qkv
