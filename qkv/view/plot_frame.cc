// Layout and drawing of the parts every chart has.
#include "qkv/view/plot_frame.h"

#include <algorithm>
#include <cmath>

#include "qkv/view/axis.h"
#include "qkv/view/text.h"

namespace qkv::detail {
namespace {

constexpr double kMargin = 16;
constexpr double kKeyWidth = 22;
const TextStyle kTickStyle{.size = 11, .color = kMuted};
const TextStyle kLegendStyle{.size = 12, .limit = 260};

std::string superscript(int value) {
  static const char* const kDigits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string out = value < 0 ? "⁻" : "";
  for (const char c : std::to_string(std::abs(value))) out += kDigits[c - '0'];
  return out;
}

std::string log_label(double value) {
  const double exponent = std::log10(value);
  const bool power = std::abs(exponent - std::round(exponent)) < 1e-9;
  if (power && std::abs(exponent) > 3.5) return "10" + superscript(static_cast<int>(std::round(exponent)));
  return format_number(value, 4);
}

// Ends moved outwards to multiples of the tick step, which may itself grow with them.
void round_ends(const Axis& axis, double& low, double& high) {
  for (int round = 0; round < 3; ++round) {
    const std::vector<double> ticks = linear_ticks(low, high, 5);
    if (ticks.size() < 2) return;
    const double step = ticks[1] - ticks[0];
    if (!axis.low) low = std::floor(low / step + 1e-9) * step;
    if (!axis.high) high = std::ceil(high / step - 1e-9) * step;
  }
}

}  // namespace

bool AxisScale::shows(double value) const { return std::isfinite(value) && (!log || value > 0); }

double AxisScale::operator()(double value) const {
  const double t = log ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  // Far outside values stay finite for the renderer; they are clipped anyway.
  return from + (to - from) * std::clamp(t, -100.0, 100.0);
}

AxisScale fit_axis(const Axis& axis, std::span<const double> values, bool from_zero) {
  AxisScale scale;
  scale.log = axis.log;
  bool any = false;
  for (const double v : values) {
    if (!scale.shows(v)) continue;
    scale.low = any ? std::min(scale.low, v) : v;
    scale.high = any ? std::max(scale.high, v) : v;
    any = true;
  }
  if (!any) {
    scale.low = scale.log ? 0.1 : 0;
    scale.high = 1;
  }
  if (scale.log) {
    const double pad = scale.low == scale.high ? 2 : std::pow(scale.high / scale.low, 0.04);
    scale.low = axis.low.value_or(scale.low / pad);
    scale.high = axis.high.value_or(scale.high * pad);
    if (!(scale.low > 0)) scale.low = std::min(1e-12, scale.high / 10);
    if (!(scale.high > scale.low)) scale.high = scale.low * 10;
    return scale;
  }
  // A chart of amounts starts at zero unless its values lie far from it.
  if (from_zero && scale.low > 0 && scale.low < 0.5 * scale.high) scale.low = 0;
  if (scale.low == scale.high) {
    const double pad = scale.low == 0 ? 1 : 0.1 * std::abs(scale.low);
    scale.low -= pad;
    scale.high += pad;
  }
  scale.low = axis.low.value_or(scale.low);
  scale.high = axis.high.value_or(scale.high);
  if (from_zero) round_ends(axis, scale.low, scale.high);
  if (!(scale.high > scale.low)) scale.high = scale.low + 1;
  return scale;
}

std::vector<Tick> ticks_of(const AxisScale& scale, const Axis& axis, int count) {
  std::vector<Tick> ticks;
  if (scale.log) {
    for (const double v : log_ticks(scale.low, scale.high)) ticks.push_back({v, log_label(v)});
    return ticks;
  }
  for (const double v : linear_ticks(scale.low, scale.high, count)) {
    if (axis.whole && v != std::round(v)) continue;
    ticks.push_back({v, format_number(v, 4)});
  }
  return ticks;
}

Frame lay_out_frame(FrameText text, double width, double area_height) {
  Frame frame;
  frame.text = std::move(text);
  frame.width = width;
  const double wrap = width - 2 * kMargin;
  double y = kMargin;
  if (!frame.text.title.empty()) {
    y += measure_text(frame.text.title, {.size = 15, .bold = true, .wrap = wrap}).h + 8;
  }
  frame.legend_y = y;
  double x = kMargin;
  for (const LegendEntry& entry : frame.text.legend) {
    const double w = kKeyWidth + 6 + measure_text(entry.name, kLegendStyle).w;
    if (x > kMargin && x + w > width - kMargin) {
      x = kMargin;
      y += 20;
    }
    frame.legend_at.push_back({x, y + 9});
    x += w + 20;
  }
  if (!frame.legend_at.empty()) y += 30;
  double labels = 0;
  for (const Tick& tick : frame.text.y_ticks) labels = std::max(labels, measure_text(tick.label, kTickStyle).w);
  const double left = std::max(kMargin + (frame.text.y_title.empty() ? 0 : 20) + labels + 10, frame.text.least_left);
  frame.area = {std::ceil(left), std::ceil(y), std::max(40.0, std::floor(width - kMargin - 8 - left)), area_height};
  y = frame.area.y + area_height + 4 + frame.text.x_label_height + (frame.text.x_title.empty() ? 0 : 20);
  frame.caption_y = y + 6;
  if (!frame.text.caption.empty()) y = frame.caption_y + measure_text(frame.text.caption, {.size = 12, .wrap = wrap}).h;
  frame.height = std::ceil(y + kMargin - 4);
  return frame;
}

void draw_mark(Canvas& canvas, Point at, int shape, Rgb color, double alpha) {
  constexpr double r = 3.4;
  switch (shape % 4) {
    case 1:
      return canvas.fill({at.x - r + 0.3, at.y - r + 0.3, 2 * r - 0.6, 2 * r - 0.6}, color, alpha);
    case 2: {
      const Point corners[] = {
          {at.x, at.y - r - 0.8}, {at.x + r + 0.6, at.y + r - 0.4}, {at.x - r - 0.6, at.y + r - 0.4}};
      return canvas.polygon(corners, color, alpha);
    }
    case 3: {
      const Point corners[] = {{at.x, at.y - r - 1}, {at.x + r + 1, at.y}, {at.x, at.y + r + 1}, {at.x - r - 1, at.y}};
      return canvas.polygon(corners, color, alpha);
    }
    default:
      return canvas.circle(at, r, color, alpha);
  }
}

void draw_frame(Canvas& canvas, const Frame& frame, const AxisScale& y) {
  const FrameText& text = frame.text;
  const Box& area = frame.area;
  const double wrap = frame.width - 2 * kMargin;
  canvas.text({kMargin, kMargin - 2}, text.title, {.size = 15, .bold = true, .wrap = wrap});
  for (size_t i = 0; i < text.legend.size(); ++i) {
    const LegendEntry& entry = text.legend[i];
    const Point at = frame.legend_at[i];
    if (entry.box) {
      canvas.fill({at.x + 4, at.y - 6, 12, 12}, entry.color);
    } else {
      if (entry.marks != Marks::kDots) {
        canvas.line({at.x, at.y}, {at.x + kKeyWidth, at.y}, {.color = entry.color, .width = 2, .dashed = entry.dashed});
      }
      if (entry.marks != Marks::kLine) draw_mark(canvas, {at.x + kKeyWidth / 2, at.y}, entry.shape, entry.color);
    }
    TextStyle style = kLegendStyle;
    style.down = 0.5;
    canvas.text({at.x + kKeyWidth + 6, at.y}, entry.name, style);
  }
  for (const Tick& tick : text.y_ticks) {
    const double at = std::round(y(tick.value));
    canvas.line({area.x, at}, {area.x + area.w, at}, {.color = kGrid});
    canvas.text({area.x - 7, at}, tick.label, {.size = 11, .color = kMuted, .across = 1, .down = 0.5});
  }
  const double x_title_y = area.y + area.h + 6 + text.x_label_height;
  canvas.text({area.x + area.w / 2, x_title_y}, text.x_title, {.size = 12, .color = kMuted, .across = 0.5});
  canvas.text({kMargin, area.y + area.h / 2}, text.y_title, {.size = 12, .color = kMuted, .across = 0.5, .angle = 90});
  canvas.text({kMargin, frame.caption_y}, text.caption, {.size = 12, .color = kMuted, .wrap = wrap});
}

}  // namespace qkv::detail
