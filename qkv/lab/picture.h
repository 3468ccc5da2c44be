// Pictures of an experiment as plain descriptions, drawn only where they are looked at.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "qkv/core/tensor.h"
#include "qkv/view/heatmap.h"
#include "qkv/view/plot.h"

namespace qkv::lab {

using Picture = std::variant<Plot, Maps>;

Drawing draw_picture(const Picture& picture);
std::string terminal_picture(const Picture& picture, const Terminal& terminal);

struct Range {
  double low = 0, high = 1;
  bool log = false;  // equal factors in place of equal steps
};
/// A line of fn over the range: the prediction.
Series curve(std::string name, const Range& range, int color, const std::function<double(double)>& fn);
/// Dots, with bars of ± reach where it is given: the measurement.
Series dots(std::string name, std::vector<double> x, std::vector<double> y, int color, std::vector<double> reach = {});

/// The first channel of y [positions, channels] over the positions.
Series first_channel(std::string name, const Tensor& y, int color, Marks marks);

/// Weights [rows, columns] of any dtype as a map.
HeatMap weight_map(std::string title, const Tensor& weights);

}  // namespace qkv::lab
