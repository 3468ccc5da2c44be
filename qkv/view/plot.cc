// Line and dot charts.
#include "qkv/view/plot.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "qkv/base/error.h"
#include "qkv/view/plot_frame.h"
#include "qkv/view/text.h"

namespace qkv {
namespace {

using detail::AxisScale;
using detail::Frame;
using detail::LegendEntry;
using detail::Tick;

void check_plot(const Plot& plot) {
  for (const Series& s : plot.series) {
    const size_t n = s.x.size();
    if (s.y.size() != n || (!s.low.empty() && s.low.size() != n) || s.low.size() != s.high.size()) {
      throw ShapeError("[plot] series '" + s.name + "' has " + std::to_string(n) + " x, " + std::to_string(s.y.size()) +
                       " y, " + std::to_string(s.low.size()) + " low and " + std::to_string(s.high.size()) +
                       " high values");
    }
  }
}

int color_index(const Plot& plot, size_t series) {
  const int chosen = plot.series[series].color;
  return chosen >= 0 ? chosen : static_cast<int>(series);
}

struct PlotLayout {
  Plot plot;
  Frame frame;
  AxisScale x, y;
  std::vector<Tick> x_ticks;
};

AxisScale fit(const Plot& plot, bool vertical) {
  std::vector<double> values;
  for (const Series& s : plot.series) {
    const std::vector<double>& main = vertical ? s.y : s.x;
    values.insert(values.end(), main.begin(), main.end());
    if (vertical) {
      values.insert(values.end(), s.low.begin(), s.low.end());
      values.insert(values.end(), s.high.begin(), s.high.end());
    }
  }
  for (const Guide& guide : plot.guides) {
    if (guide.vertical != vertical) values.push_back(guide.at);
  }
  return detail::fit_axis(vertical ? plot.y : plot.x, values, vertical);
}

PlotLayout lay_out(const Plot& plot) {
  check_plot(plot);
  PlotLayout layout{plot, Frame{}, fit(plot, false), fit(plot, true), {}};
  detail::FrameText text{plot.title, plot.caption, plot.x.title, plot.y.title, {}, {}};
  for (size_t i = 0; i < plot.series.size(); ++i) {
    const Series& s = plot.series[i];
    const int color = color_index(plot, i);
    if (!s.name.empty()) text.legend.push_back({s.name, series_color(color), s.marks, color, s.dashed});
  }
  text.y_ticks = ticks_of(layout.y, plot.y, 5);
  layout.frame = detail::lay_out_frame(std::move(text), plot.width, plot.height);
  const Box& area = layout.frame.area;
  layout.x.from = area.x;
  layout.x.to = area.x + area.w;
  layout.y.from = area.y + area.h;
  layout.y.to = area.y;
  layout.x_ticks = ticks_of(layout.x, plot.x, std::max(2, static_cast<int>(area.w / 80)));
  return layout;
}

void draw_x_axis(Canvas& canvas, const PlotLayout& layout) {
  const Box& area = layout.frame.area;
  const double bottom = area.y + area.h;
  for (const Tick& tick : layout.x_ticks) {
    const double at = layout.x(tick.value);
    canvas.line({at, bottom}, {at, bottom + 4}, {.color = kAxis});
    canvas.text({at, bottom + 5}, tick.label, {.size = 11, .color = kMuted, .across = 0.5});
  }
  canvas.line({area.x, bottom}, {area.x + area.w, bottom}, {.color = kAxis});
}

// More points than pixels: first, smallest, largest and last of each pixel column draw the same line.
std::vector<Point> thin_out(const std::vector<Point>& points, double width) {
  if (points.size() < 4 * static_cast<size_t>(width)) return points;
  std::vector<Point> out;
  for (size_t i = 0; i < points.size();) {
    size_t end = i, low = i, high = i;
    while (end < points.size() && std::floor(points[end].x) == std::floor(points[i].x)) {
      if (points[end].y < points[low].y) low = end;
      if (points[end].y > points[high].y) high = end;
      ++end;
    }
    for (const size_t k : {i, std::min(low, high), std::max(low, high), end - 1}) out.push_back(points[k]);
    i = end;
  }
  return out;
}

void draw_band(Canvas& canvas, const PlotLayout& layout, const Series& s, Rgb color) {
  std::vector<Point> upper, lower;
  const auto flush = [&] {
    upper.insert(upper.end(), lower.rbegin(), lower.rend());
    canvas.polygon(upper, color, 0.16);
    upper.clear();
    lower.clear();
  };
  for (size_t i = 0; i < s.low.size(); ++i) {
    if (!layout.x.shows(s.x[i]) || !layout.y.shows(s.low[i]) || !layout.y.shows(s.high[i])) {
      flush();
      continue;
    }
    upper.push_back({layout.x(s.x[i]), layout.y(s.high[i])});
    lower.push_back({layout.x(s.x[i]), layout.y(s.low[i])});
  }
  flush();
}

void draw_line(Canvas& canvas, const PlotLayout& layout, const Series& s, Rgb color) {
  const LineStyle style{.color = color, .width = s.faint ? 1.0 : 2.0, .alpha = s.faint ? 0.3 : 1.0, .dashed = s.dashed};
  const Box& area = layout.frame.area;
  std::vector<Point> run;
  const auto flush = [&] {
    if (run.size() == 1) canvas.circle(run[0], 2, color, style.alpha);
    canvas.polyline(thin_out(run, area.w), style);
    run.clear();
  };
  for (size_t i = 0; i < s.x.size(); ++i) {
    if (layout.x.shows(s.x[i]) && layout.y.shows(s.y[i])) {
      run.push_back({layout.x(s.x[i]), layout.y(s.y[i])});
      continue;
    }
    flush();
    if (!layout.x.shows(s.x[i])) continue;
    const double x = layout.x(s.x[i]), y = area.y + area.h - 6;
    canvas.line({x - 3, y - 3}, {x + 3, y + 3}, {.color = color, .width = 1.5});
    canvas.line({x - 3, y + 3}, {x + 3, y - 3}, {.color = color, .width = 1.5});
  }
  flush();
}

void draw_dots(Canvas& canvas, const PlotLayout& layout, const Series& s, int color) {
  for (size_t i = 0; i < s.x.size(); ++i) {
    if (!layout.x.shows(s.x[i]) || !layout.y.shows(s.y[i])) continue;
    const double x = layout.x(s.x[i]);
    const bool bar = s.marks == Marks::kDots && !s.low.empty() && std::isfinite(s.high[i]) && std::isfinite(s.low[i]);
    if (bar) {
      // On a log axis a bar that reaches zero runs off the bottom.
      const double low = layout.y.shows(s.low[i]) ? layout.y(s.low[i]) : layout.frame.area.y + layout.frame.area.h;
      const double high = layout.y.shows(s.high[i]) ? layout.y(s.high[i]) : low;
      const LineStyle style{.color = series_color(color), .width = 1.2};
      canvas.line({x, low}, {x, high}, style);
      canvas.line({x - 3, low}, {x + 3, low}, style);
      canvas.line({x - 3, high}, {x + 3, high}, style);
    }
    detail::draw_mark(canvas, {x, layout.y(s.y[i])}, color, series_color(color), s.faint ? 0.35 : 1);
  }
}

void draw_guides(Canvas& canvas, const PlotLayout& layout) {
  const Box& area = layout.frame.area;
  for (const Guide& guide : layout.plot.guides) {
    const AxisScale& scale = guide.vertical ? layout.x : layout.y;
    if (!scale.shows(guide.at)) continue;
    const double at = scale(guide.at);
    const LineStyle style{.color = kMuted, .width = 1, .dashed = true};
    if (guide.vertical) {
      canvas.line({at, area.y}, {at, area.y + area.h}, style);
      const bool left = at > area.x + area.w * 0.7;
      canvas.text({at + (left ? -5 : 5), area.y + 2}, guide.label,
                  {.size = 11, .color = kMuted, .across = left ? 1.0 : 0.0});
    } else {
      canvas.line({area.x, at}, {area.x + area.w, at}, style);
      canvas.text({area.x + area.w - 4, at - 2}, guide.label, {.size = 11, .color = kMuted, .across = 1, .down = 1});
    }
  }
}

void draw(Canvas& canvas, const PlotLayout& layout) {
  draw_frame(canvas, layout.frame, layout.y);
  draw_x_axis(canvas, layout);
  const Box& area = layout.frame.area;
  canvas.clipped({area.x - 5, area.y - 5, area.w + 10, area.h + 10}, [&] {
    draw_guides(canvas, layout);
    const std::vector<Series>& series = layout.plot.series;
    for (size_t i = 0; i < series.size(); ++i) {
      if (series[i].marks != Marks::kDots)
        draw_band(canvas, layout, series[i], series_color(color_index(layout.plot, i)));
    }
    for (size_t i = 0; i < series.size(); ++i) {
      const int color = color_index(layout.plot, i);
      if (series[i].marks != Marks::kDots) draw_line(canvas, layout, series[i], series_color(color));
      if (series[i].marks != Marks::kLine) draw_dots(canvas, layout, series[i], color);
    }
  });
}

}  // namespace

Drawing draw_plot(const Plot& plot) {
  const auto layout = std::make_shared<const PlotLayout>(lay_out(plot));
  std::string description = plot.title;
  if (!plot.caption.empty()) description += (description.empty() ? "" : ". ") + plot.caption;
  return {layout->frame.width, layout->frame.height, [layout](Canvas& canvas) { draw(canvas, *layout); }, description};
}

Box plot_area(const Plot& plot) { return lay_out(plot).frame.area; }

}  // namespace qkv
