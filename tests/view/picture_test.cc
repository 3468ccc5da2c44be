// Pictures: bytes to colours, weights laid over patches, tiles without smoothing.
#include "qkv/view/picture.h"

#include <gtest/gtest.h>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "view/png.h"

namespace qkv {
namespace {

using testing::message_of;
using testing::Png;

TEST(Picture, BytesBecomeColours) {
  const std::vector<uint8_t> grey = {0, 100, 200, 255}, color = {1, 2, 3, 4, 5, 6};
  const Raster a = raster_of({.width = 2, .height = 2, .channels = 1, .pixels = grey}),
               b = raster_of({.width = 2, .height = 1, .channels = 3, .pixels = color});
  EXPECT_EQ(a.colors[1], (Rgb{100, 100, 100}));
  EXPECT_EQ(b.colors[1], (Rgb{4, 5, 6}));
  EXPECT_EQ(message_of<ShapeError>([&] { raster_of({.width = 2, .height = 3, .channels = 1, .pixels = grey}); }),
            "[picture] 4 bytes are not 3x2 pixels of 1 channels");
  EXPECT_NE(message_of<ShapeError>([&] { raster_of({.width = 1, .height = 2, .channels = 2, .pixels = grey}); }), "");
}

TEST(Picture, OverlayTintsWholePatchesByTheirWeight) {
  const std::vector<uint8_t> grey(4 * 6, 100);
  const Raster plain = raster_of({.width = 6, .height = 4, .channels = 1, .pixels = grey});
  const float weights[] = {0, 0.1f, 0.2f, 0, 0.4f, 0};  // 2 x 3 patches of 2 x 2 pixels
  const Raster out = overlay(plain, weights, 2, 3);
  const auto at = [&](int64_t y, int64_t x) { return out.colors[static_cast<size_t>(y * 6 + x)]; };
  EXPECT_EQ(at(0, 0), (Rgb{100, 100, 100}));  // no weight: the picture itself
  for (int64_t y = 0; y < 4; ++y) {
    for (int64_t x = 0; x < 6; ++x) EXPECT_EQ(at(y, x), at(y / 2 * 2, x / 2 * 2)) << "one colour per patch";
  }
  const auto tint = [&](int64_t y, int64_t x) { return at(y, x).r - at(y, x).b; };
  EXPECT_GT(tint(0, 2), 0);
  EXPECT_NEAR(tint(0, 4), 2 * tint(0, 2), 2);
  EXPECT_NEAR(tint(2, 2), 4 * tint(0, 2), 4);
  EXPECT_NE(message_of<ShapeError>([&] { overlay(plain, weights, 2, 2); }), "");
}

TEST(Picture, TilesShowPixelsUnsmoothed) {
  Raster r{.rows = 2, .columns = 2};
  r.colors = {{255, 0, 0}, {0, 255, 0}, {0, 0, 255}, {255, 255, 0}};
  const Drawing drawing = draw_tiles("", {{"a title", r}, {"", r}}, 2, 20);
  const Png png(to_png(drawing, 1));
  // Frames cover the edges; inside there are only the four colours.
  for (const Rgb color : r.colors) EXPECT_GT(png.count(color), 2 * 60) << hex(color);
  EXPECT_EQ(png.count({128, 128, 0}), 0);
  EXPECT_EQ(png.width(), static_cast<int>(drawing.width));
  EXPECT_NE(message_of<ShapeError>([] { draw_tiles("", {}, 1); }), "");
}

}  // namespace
}  // namespace qkv
