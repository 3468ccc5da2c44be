// Pictures of an experiment: from description to drawing or terminal.
#include "qkv/lab/picture.h"

#include <cmath>

#include "qkv/base/budget.h"
#include "qkv/core/tensor.h"

namespace qkv::lab {

Drawing draw_picture(const Picture& picture) {
  if (const auto* plot = std::get_if<Plot>(&picture)) return draw_plot(*plot);
  return draw_maps(std::get<Maps>(picture));
}

std::string terminal_picture(const Picture& picture, const Terminal& terminal) {
  if (const auto* plot = std::get_if<Plot>(&picture)) return terminal_plot(*plot, terminal);
  const Maps& m = std::get<Maps>(picture);
  std::string text = m.title + "\n";
  for (HeatMap map : m.maps) {
    if (m.maps.size() == 1) map.title.clear();
    text += terminal_heatmap(map, terminal);
  }
  return text;
}

Series curve(std::string name, const Range& range, int color, const std::function<double(double)>& fn) {
  constexpr int kPoints = 160;
  Series s{.name = std::move(name), .color = color};
  for (int i = 0; i <= kPoints; ++i) {
    const double share = double(i) / kPoints;
    check_budget();
    s.x.push_back(range.log ? range.low * std::pow(range.high / range.low, share)
                            : range.low + (range.high - range.low) * share);
    s.y.push_back(fn(s.x.back()));
  }
  return s;
}

Series dots(std::string name, std::vector<double> x, std::vector<double> y, int color, std::vector<double> reach) {
  Series s{.name = std::move(name), .x = std::move(x), .y = std::move(y), .marks = Marks::kDots, .color = color};
  for (size_t i = 0; i < reach.size(); ++i) {
    s.low.push_back(s.y[i] - reach[i]);
    s.high.push_back(s.y[i] + reach[i]);
  }
  return s;
}

Series first_channel(std::string name, const Tensor& y, int color, Marks marks) {
  Series s{.name = std::move(name), .marks = marks, .color = color};
  for (int64_t i = 0; i < y.dim(0); ++i) {
    s.x.push_back(static_cast<double>(i));
    s.y.push_back(y.at({i, 0}));
  }
  return s;
}

HeatMap weight_map(std::string title, const Tensor& weights) {
  HeatMap map{.title = std::move(title), .rows = weights.dim(-2), .columns = weights.dim(-1)};
  map.values = weights.to_vector();
  return map;
}

}  // namespace qkv::lab
