// What all charts share: title, legend, axes with ticks, caption.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "qkv/view/canvas.h"
#include "qkv/view/plot.h"

namespace qkv::detail {

/// From values to positions along one axis.
struct AxisScale {
  double low = 0, high = 1;
  bool log = false;
  double from = 0, to = 1;  // positions of low and high

  bool shows(double value) const;  // finite, and positive on a log axis
  double operator()(double value) const;
};

/// Limits around the data: what the axis asks for, else the values with round ends.
AxisScale fit_axis(const Axis& axis, std::span<const double> values, bool from_zero);

struct Tick {
  double value = 0;
  std::string label;
};
std::vector<Tick> ticks_of(const AxisScale& scale, const Axis& axis, int count);

struct LegendEntry {
  std::string name;
  Rgb color;
  Marks marks = Marks::kLine;
  int shape = 0;  // of the dots
  bool dashed = false;
  bool box = false;  // a bar's key
};

/// What the frame needs to know of a chart.
struct FrameText {
  std::string title, caption, x_title, y_title;
  std::vector<LegendEntry> legend;
  std::vector<Tick> y_ticks;
  double x_label_height = 18;
  double least_left = 0;  // room left of the area for slanted labels
};

/// Positions of everything but the data.
struct Frame {
  FrameText text;
  double width = 0, height = 0;
  double legend_y = 0, caption_y = 0;
  std::vector<Point> legend_at;
  Box area;
};
Frame lay_out_frame(FrameText text, double width, double area_height);
/// Title, legend, horizontal grid with labels, axis titles, caption. `y` must have the area's positions.
void draw_frame(Canvas& canvas, const Frame& frame, const AxisScale& y);

/// Circle, square, triangle or diamond, by number.
void draw_mark(Canvas& canvas, Point at, int shape, Rgb color, double alpha = 1);

}  // namespace qkv::detail
