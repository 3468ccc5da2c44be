// Colour maps have equal lightness steps; series colours can be told apart from the paper.
#include "qkv/view/color.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace qkv {
namespace {

// L* runs straight from the first to the last colour of [begin, end).
void expect_even_steps(const ColorMap& map, size_t begin, size_t end) {
  const double first = lightness(map[begin]), last = lightness(map[end - 1]);
  for (size_t i = begin; i < end; ++i) {
    const double t = static_cast<double>(i - begin) / static_cast<double>(end - begin - 1);
    EXPECT_NEAR(lightness(map[i]), first + (last - first) * t, 0.6) << i;
  }
}

TEST(Color, LightnessKnownValues) {
  EXPECT_NEAR(lightness({255, 255, 255}), 100, 1e-3);
  EXPECT_NEAR(lightness({0, 0, 0}), 0, 1e-9);
  EXPECT_NEAR(lightness({119, 119, 119}), 50, 0.1);
  EXPECT_NEAR(lightness({0, 0, 255}), 32.3, 0.05);
  EXPECT_NEAR(contrast({255, 255, 255}, {0, 0, 0}), 21, 1e-3);
}

TEST(Color, MapsHaveEqualLightnessSteps) {
  expect_even_steps(sequential_map(), 0, 256);
  expect_even_steps(dark_map(), 0, 256);
  expect_even_steps(diverging_map(), 0, 128);
  expect_even_steps(diverging_map(), 128, 256);
  EXPECT_EQ(sequential_map().front(), (Rgb{255, 255, 255}));
  const Rgb navy = sequential_map().back();
  EXPECT_LT(lightness(navy), 16);
  EXPECT_GT(navy.b, 2 * navy.g);
  EXPECT_GT(diverging_map().front().b, diverging_map().front().r);
  EXPECT_GT(diverging_map().back().r, diverging_map().back().b);
}

TEST(Color, PositionsAreClamped) {
  const ColorMap& map = sequential_map();
  EXPECT_EQ(color_at(map, -1), map[0]);
  EXPECT_EQ(color_at(map, 0.5), map[128]);
  EXPECT_EQ(color_at(map, 7), map[255]);
  EXPECT_EQ(color_at(map, std::numeric_limits<double>::quiet_NaN()), map[0]);
  EXPECT_EQ(hex({1, 0x2e, 0xff}), "#012eff");
}

TEST(Color, SeriesStandOut) {
  for (int i = 0; i < 8; ++i) {
    EXPECT_GE(contrast(series_color(i), kPaper), 3.0) << i;
    EXPECT_GE(contrast(series_color_dark(i), {0x14, 0x16, 0x1a}), 3.0) << i;
  }
  EXPECT_EQ(series_color(8), series_color(0));
  EXPECT_GE(contrast(kInk, kPaper), 4.5);
  EXPECT_GE(contrast(kMuted, kPaper), 4.5);
}

}  // namespace
}  // namespace qkv
