// Colours that keep their order in grey: maps of equal lightness steps, and series colours safe for the colour-blind.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace qkv {

struct Rgb {
  uint8_t r = 0, g = 0, b = 0;
  friend bool operator==(const Rgb&, const Rgb&) = default;
};

/// "#0a2e63".
std::string hex(Rgb color);
/// CIE L* (D65), 0 black to 100 white.
double lightness(Rgb color);
/// WCAG contrast ratio, 1 to 21.
double contrast(Rgb a, Rgb b);

/// 256 colours from the lowest value to the highest.
using ColorMap = std::array<Rgb, 256>;
/// White to navy: zero is the paper, and equal steps of the value are equal steps of L*.
const ColorMap& sequential_map();
/// Near-black to cream, for dark backgrounds.
const ColorMap& dark_map();
/// Blue (low) through white (middle) to orange (high), equal L* steps on both sides.
const ColorMap& diverging_map();
/// The colour of t in [0, 1]; values outside are clamped, NaN takes the lowest.
Rgb color_at(const ColorMap& map, double t);

/// Eight colours at least 3:1 on white and distinct under simulated colour-blindness; repeats beyond eight.
Rgb series_color(int index);
/// The same for dark backgrounds.
Rgb series_color_dark(int index);

inline constexpr Rgb kInk{0x1b, 0x1f, 0x27};
inline constexpr Rgb kMuted{0x5c, 0x63, 0x70};
inline constexpr Rgb kGrid{0xe3, 0xe6, 0xeb};
inline constexpr Rgb kAxis{0x8a, 0x91, 0x9e};
inline constexpr Rgb kPaper{0xff, 0xff, 0xff};

}  // namespace qkv
