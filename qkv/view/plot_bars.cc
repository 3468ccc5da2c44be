// Bar charts.
#include <algorithm>
#include <cmath>
#include <memory>

#include "qkv/base/error.h"
#include "qkv/view/plot.h"
#include "qkv/view/plot_frame.h"
#include "qkv/view/text.h"

namespace qkv {
namespace {

using detail::AxisScale;
using detail::Frame;

struct BarLayout {
  BarChart chart;
  Frame frame;
  AxisScale y;
  bool slanted = false;
};

const TextStyle kGroupStyle{.size = 11, .color = kInk, .limit = 110};

void check_bars(const BarChart& chart) {
  for (const Bars& bars : chart.series) {
    const size_t n = chart.groups.size();
    if (bars.values.size() != n || (!bars.low.empty() && bars.low.size() != n) || bars.low.size() != bars.high.size()) {
      throw ShapeError("[bars] series '" + bars.name + "' has " + std::to_string(bars.values.size()) + " values for " +
                       std::to_string(n) + " groups");
    }
  }
}

BarLayout lay_out(const BarChart& chart) {
  check_bars(chart);
  BarLayout layout{chart, {}, {}, false};
  layout.chart.y.log = false;
  std::vector<double> values{0};
  for (const Bars& bars : chart.series) {
    for (const std::vector<double>* list : {&bars.values, &bars.low, &bars.high}) {
      values.insert(values.end(), list->begin(), list->end());
    }
  }
  layout.y = detail::fit_axis(layout.chart.y, values, true);
  detail::FrameText text{chart.title, chart.caption, chart.group_title, chart.y.title, {}, {}};
  for (size_t i = 0; i < chart.series.size(); ++i) {
    if (!chart.series[i].name.empty()) {
      text.legend.push_back({.name = chart.series[i].name, .color = series_color(static_cast<int>(i)), .box = true});
    }
  }
  text.y_ticks = ticks_of(layout.y, layout.chart.y, 5);
  double widest = 0;
  for (const std::string& group : chart.groups)
    widest = std::max(widest, measure_text(visible_token(group), kGroupStyle).w);
  const double slot = (chart.width - 90) / std::max<double>(1, static_cast<double>(chart.groups.size()));
  layout.slanted = widest > slot - 4;
  if (layout.slanted) {
    text.x_label_height = (widest + 12) * 0.7072 + 4;
    text.least_left = (widest + 12) * 0.7072 + 8 - slot / 2;
  }
  layout.frame = detail::lay_out_frame(std::move(text), chart.width, chart.height);
  layout.y.from = layout.frame.area.y + layout.frame.area.h;
  layout.y.to = layout.frame.area.y;
  return layout;
}

void draw_bar(Canvas& canvas, const BarLayout& layout, size_t series, size_t group, const Box& slot) {
  const Bars& bars = layout.chart.series[series];
  const double value = bars.values[group];
  if (!std::isfinite(value)) return;
  const double zero = layout.y(std::clamp(0.0, layout.y.low, layout.y.high)), top = layout.y(value);
  canvas.fill({slot.x, std::min(zero, top), slot.w, std::abs(zero - top)}, series_color(static_cast<int>(series)));
  double peak = top;
  if (!bars.low.empty() && std::isfinite(bars.low[group]) && std::isfinite(bars.high[group])) {
    const double x = slot.x + slot.w / 2, low = layout.y(bars.low[group]), high = layout.y(bars.high[group]);
    const double cap = std::min(4.0, slot.w / 3);
    canvas.line({x, low}, {x, high}, {.color = kInk, .width = 1.2});
    canvas.line({x - cap, low}, {x + cap, low}, {.color = kInk, .width = 1.2});
    canvas.line({x - cap, high}, {x + cap, high}, {.color = kInk, .width = 1.2});
    peak = std::min(peak, high);
  }
  if (layout.chart.numbers) {
    const bool below = value < 0;
    canvas.text({slot.x + slot.w / 2, below ? top + 2 : peak - 2}, format_number(value, 3),
                {.size = 10, .across = 0.5, .down = below ? 0.0 : 1.0});
  }
}

void draw(Canvas& canvas, const BarLayout& layout) {
  const Box& area = layout.frame.area;
  draw_frame(canvas, layout.frame, layout.y);
  const auto groups = static_cast<double>(std::max<size_t>(1, layout.chart.groups.size()));
  const auto count = static_cast<double>(std::max<size_t>(1, layout.chart.series.size()));
  const double slot = area.w / groups, width = std::min(48.0, slot * 0.78 / count);
  const double bottom = area.y + area.h;
  for (size_t g = 0; g < layout.chart.groups.size(); ++g) {
    const double center = area.x + (static_cast<double>(g) + 0.5) * slot;
    for (size_t s = 0; s < layout.chart.series.size(); ++s) {
      const double x = center + (static_cast<double>(s) - count / 2) * width;
      draw_bar(canvas, layout, s, g, {x + 0.5, area.y, std::max(1.0, width - 1), area.h});
    }
    TextStyle style = kGroupStyle;
    style.across = layout.slanted ? 1 : 0.5;
    style.angle = layout.slanted ? 45 : 0;
    canvas.text({center, bottom + 6}, visible_token(layout.chart.groups[g]), style);
  }
  const double zero = layout.y(std::clamp(0.0, layout.y.low, layout.y.high));
  canvas.line({area.x, zero}, {area.x + area.w, zero}, {.color = kAxis});
}

}  // namespace

Drawing draw_bars(const BarChart& chart) {
  const auto layout = std::make_shared<const BarLayout>(lay_out(chart));
  std::string description = chart.title;
  if (!chart.caption.empty()) description += (description.empty() ? "" : ". ") + chart.caption;
  return {layout->frame.width, layout->frame.height, [layout](Canvas& canvas) { draw(canvas, *layout); }, description};
}

Box bars_area(const BarChart& chart) { return lay_out(chart).frame.area; }

}  // namespace qkv
