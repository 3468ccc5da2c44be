// Colour maps are built in CIE LCh at first use: lightness is set exactly, chroma shrinks until sRGB can show it.
#include "qkv/view/color.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace qkv {
namespace {

struct Lch {
  double l, c, h;  // h in degrees
};

// D65 white.
constexpr double kXn = 0.95047, kZn = 1.08883;

double to_linear(double v) { return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4); }
double to_gamma(double v) { return v <= 0.0031308 ? v * 12.92 : 1.055 * std::pow(v, 1 / 2.4) - 0.055; }

double luminance(Rgb color) {
  return 0.2126729 * to_linear(color.r / 255.0) + 0.7151522 * to_linear(color.g / 255.0) +
         0.0721750 * to_linear(color.b / 255.0);
}

std::array<double, 3> linear_rgb(const Lch& color) {
  const double h = color.h * std::numbers::pi / 180;
  const double fy = (color.l + 16) / 116;
  const double fx = fy + color.c * std::cos(h) / 500, fz = fy - color.c * std::sin(h) / 200;
  const auto inverse = [](double f) { return f > 6.0 / 29 ? f * f * f : 3 * 36.0 / 841 * (f - 4.0 / 29); };
  const double x = kXn * inverse(fx), y = inverse(fy), z = kZn * inverse(fz);
  return {3.2404542 * x - 1.5371385 * y - 0.4985314 * z, -0.9692660 * x + 1.8760108 * y + 0.0415560 * z,
          0.0556434 * x - 0.2040259 * y + 1.0572252 * z};
}

bool in_gamut(const Lch& color) {
  for (const double v : linear_rgb(color)) {
    if (v < -1e-4 || v > 1 + 1e-4) return false;
  }
  return true;
}

Rgb to_rgb(Lch color) {
  if (!in_gamut(color)) {
    double low = 0, high = color.c;
    for (int i = 0; i < 24; ++i) {
      color.c = (low + high) / 2;
      (in_gamut(color) ? low : high) = color.c;
    }
    color.c = low;
  }
  const std::array<double, 3> v = linear_rgb(color);
  const auto byte = [](double x) {
    return static_cast<uint8_t>(std::lround(255 * std::clamp(to_gamma(std::max(x, 0.0)), 0.0, 1.0)));
  };
  return {byte(v[0]), byte(v[1]), byte(v[2])};
}

double mix(double a, double b, double t) { return a + (b - a) * t; }
// Chroma that rises quickly from grey and falls again towards the dark end.
double arch(double t, double peak, double end) {
  return t < 0.55 ? peak * std::sin(t / 0.55 * 1.5708) : mix(peak, end, (t - 0.55) / 0.45);
}

ColorMap make_sequential() {
  ColorMap map;
  for (size_t i = 0; i < map.size(); ++i) {
    const double t = static_cast<double>(i) / 255;
    map[i] = to_rgb({mix(100, 14, t), arch(t, 42, 40), mix(248, 290, t)});
  }
  return map;
}

ColorMap make_dark() {
  ColorMap map;
  for (size_t i = 0; i < map.size(); ++i) {
    const double t = static_cast<double>(i) / 255;
    map[i] = to_rgb({mix(7, 96, t), t < 0.5 ? mix(6, 48, t * 2) : mix(48, 14, t * 2 - 1), mix(20, 92, std::sqrt(t))});
  }
  return map;
}

ColorMap make_diverging() {
  ColorMap map;
  for (size_t i = 0; i < map.size(); ++i) {
    const double t = static_cast<double>(i) / 255 * 2 - 1, a = std::abs(t);
    map[i] =
        to_rgb({mix(98, 38, a), t < 0 ? arch(a, 42, 46) : arch(a, 50, 62), t < 0 ? mix(250, 278, a) : mix(75, 50, a)});
  }
  return map;
}

constexpr Rgb kSeries[8] = {{0x38, 0x25, 0x97}, {0xf8, 0x59, 0x12}, {0x61, 0x24, 0x31}, {0xa5, 0x85, 0xb8},
                            {0xcd, 0x79, 0x69}, {0x6b, 0x7d, 0xfc}, {0x94, 0x33, 0x0a}, {0x5d, 0x40, 0x6f}};
constexpr Rgb kSeriesDark[8] = {{0xaf, 0x76, 0x87}, {0x59, 0x73, 0xf9}, {0xde, 0x5b, 0x24}, {0xd7, 0xf1, 0xac},
                                {0x4e, 0xf3, 0xfe}, {0x9c, 0x84, 0xd6}, {0xfa, 0xca, 0x35}, {0xdf, 0x80, 0x6e}};

}  // namespace

std::string hex(Rgb color) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "#";
  for (const uint8_t v : {color.r, color.g, color.b}) {
    out += kDigits[v >> 4];
    out += kDigits[v & 15];
  }
  return out;
}

double lightness(Rgb color) {
  const double y = luminance(color);
  return y > 216.0 / 24389 ? 116 * std::cbrt(y) - 16 : y * 24389.0 / 27;
}

double contrast(Rgb a, Rgb b) {
  const double x = luminance(a) + 0.05, y = luminance(b) + 0.05;
  return std::max(x, y) / std::min(x, y);
}

const ColorMap& sequential_map() {
  static const ColorMap map = make_sequential();
  return map;
}
const ColorMap& dark_map() {
  static const ColorMap map = make_dark();
  return map;
}
const ColorMap& diverging_map() {
  static const ColorMap map = make_diverging();
  return map;
}

Rgb color_at(const ColorMap& map, double t) {
  if (!(t > 0)) return map.front();
  return map[static_cast<size_t>(std::lround(std::min(t, 1.0) * 255))];
}

Rgb series_color(int index) { return kSeries[static_cast<size_t>(index < 0 ? 0 : index) % 8]; }
Rgb series_color_dark(int index) { return kSeriesDark[static_cast<size_t>(index < 0 ? 0 : index) % 8]; }

}  // namespace qkv
