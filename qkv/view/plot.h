// Line, dot and bar charts: PNG, SVG and terminal from one description.
#pragma once

#include <string>

#include "qkv/figures/figures.h"
#include "qkv/view/drawing.h"
#include "qkv/view/terminal.h"

namespace qkv {

/// Throws ShapeError when x, y, low and high of a series differ in length. Series without points are allowed.
Drawing draw_plot(const Plot& plot);
/// Where draw_plot puts the area between the axes, in the drawing's own pixels.
Box plot_area(const Plot& plot);
/// Lines of braille dots in colour, or one letter per series without; `rows` lines between the axes.
std::string terminal_plot(const Plot& plot, const Terminal& terminal, int rows = 12);

/// Throws ShapeError when a series does not have one value per group.
Drawing draw_bars(const BarChart& chart);
Box bars_area(const BarChart& chart);

}  // namespace qkv
