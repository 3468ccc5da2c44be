// Maps of traces: patches of pictures, and choices that fit nothing.
#include "qkv/report/trace_maps.h"

#include <gtest/gtest.h>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "tasks/traced_layer.h"
#include "view/png.h"

namespace qkv {
namespace {

using testing::layer_of;
using testing::message_of;

// 5 tokens: a class token and 2 x 2 patches; the class token of head h looks at patch h alone.
TracedExample pictured(int64_t first_patch) {
  const int64_t n = first_patch + 4;
  std::vector<float> weights(static_cast<size_t>(2 * n * n));
  for (int64_t h = 0; h < 2; ++h) {
    for (int64_t i = 0; i < n; ++i) weights[static_cast<size_t>((h * n + i) * n + first_patch + h)] = 1;
  }
  TracedExample e;
  e.attention = {layer_of(0, 2, n, weights), layer_of(1, 2, n, weights)};
  e.picture = TracedPicture{Bitmap{.width = 4, .height = 4, .channels = 1, .pixels = std::vector<uint8_t>(16, 80)}};
  e.picture->patch_rows = e.picture->patch_columns = 2;
  e.picture->first_patch = first_patch;
  return e;
}

TEST(PictureMaps, ShowPatchesLayerByLayer) {
  for (const int64_t first_patch : {0, 1}) {
    const std::vector<HeatMap> maps = maps_of(pictured(first_patch));
    ASSERT_EQ(maps.size(), 5u);
    EXPECT_EQ(maps[0].title, "rollout");
    EXPECT_EQ(maps[2].title, "self layer 0 head 1");
    EXPECT_EQ(maps[2].rows, 2);
    EXPECT_EQ(maps[2].columns, 2);
    EXPECT_EQ(maps[2].values, (std::vector<float>{0, 1, 0, 0}));
    EXPECT_GT(maps[0].values[0], 0.3f);
    EXPECT_NEAR(maps[0].values[0], maps[0].values[1], 1e-6);
  }
  EXPECT_EQ(maps_of(pictured(1), {.site = "self", .layer = 1, .head = 0}).size(), 1u);
  EXPECT_NE(message_of<ConfigError>([] {
              maps_of(pictured(1), {.site = "", .layer = 7, .head = -1});
            }).find("there are 2 layers, 0 to 1"),
            std::string::npos);
}

TEST(PictureMaps, AreDrawnOverThePicture) {
  const Drawing drawing = draw_picture_maps("title", pictured(1));
  const testing::Png png(to_png(drawing, 1));
  // Every tile shows the picture's grey where nothing was looked at.
  EXPECT_GT(png.count({80, 80, 80}), 4 * 50 * 50);
  EXPECT_NE(message_of<ConfigError>([] {
              TracedExample none;
              draw_picture_maps("", none);
            }),
            "");
}

}  // namespace
}  // namespace qkv
