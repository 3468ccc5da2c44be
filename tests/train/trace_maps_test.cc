// Maps of traces: rollout against a product written out, patches of pictures, choices that fit nothing.
#include "qkv/train/trace_maps.h"

#include <gtest/gtest.h>

#include <cmath>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "view/png.h"

namespace qkv {
namespace {

using testing::message_of;

// One layer with the given weights [H, n, n].
AttentionTrace layer_of(int layer, int64_t heads, int64_t n, const std::vector<float>& weights) {
  AttentionTrace t;
  t.site = "self";
  t.layer = layer;
  t.B = 1;
  t.H = heads;
  t.Lq = t.Lk = n;
  t.scores = [=](const ScoreWindow& w) {
    const auto from = static_cast<size_t>((w.h * n + w.row_begin) * n),
               count = static_cast<size_t>((w.row_end - w.row_begin) * n);
    return Tensor::from(std::span(weights).subspan(from, count), {w.row_end - w.row_begin, n});
  };
  return t;
}

TEST(Rollout, IsTheProductOfMixedLayers) {
  // Heads (0.2, 0.8) and (0.6, 0.4) of row 0 have mean (0.4, 0.6); with the residual (0.7, 0.3).
  const AttentionTrace a = layer_of(0, 2, 2, {0.2f, 0.8f, 1, 0, 0.6f, 0.4f, 0, 1});
  const AttentionTrace b = layer_of(1, 1, 2, {0.5f, 0.5f, 0.9f, 0.1f});
  const std::vector<float> one = attention_rollout({a});
  EXPECT_NEAR(one[0], 0.7, 1e-6);
  EXPECT_NEAR(one[1], 0.3, 1e-6);
  EXPECT_NEAR(one[2], 0.25, 1e-6);
  EXPECT_NEAR(one[3], 0.75, 1e-6);
  // M_b = [[.75, .25], [.45, .55]]; R = M_b M_a.
  const std::vector<float> both = attention_rollout({a, b});
  EXPECT_NEAR(both[0], 0.75 * 0.7 + 0.25 * 0.25, 1e-6);
  EXPECT_NEAR(both[1], 0.75 * 0.3 + 0.25 * 0.75, 1e-6);
  EXPECT_NEAR(both[2], 0.45 * 0.7 + 0.55 * 0.25, 1e-6);
  for (size_t r = 0; r < 2; ++r) EXPECT_NEAR(both[2 * r] + both[2 * r + 1], 1, 1e-6);
  EXPECT_NE(message_of<ConfigError>([] { attention_rollout({}); }), "");
  AttentionTrace cross = b;
  cross.Lk = 3;
  EXPECT_NE(message_of<ConfigError>([&] { attention_rollout({a, cross}); }), "");
}

// 5 tokens: a class token and 2 x 2 patches; the class token of head h looks at patch h alone.
TracedExample pictured(int64_t first_patch) {
  const int64_t n = first_patch + 4;
  std::vector<float> weights(static_cast<size_t>(2 * n * n));
  for (int64_t h = 0; h < 2; ++h) {
    for (int64_t i = 0; i < n; ++i) weights[static_cast<size_t>((h * n + i) * n + first_patch + h)] = 1;
  }
  TracedExample e;
  e.attention = {layer_of(0, 2, n, weights), layer_of(1, 2, n, weights)};
  e.picture = TracedPicture{.width = 4, .height = 4, .channels = 1, .pixels = std::vector<uint8_t>(16, 80)};
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
  EXPECT_NE(message_of<ConfigError>([] { maps_of(pictured(1), {.site = "", .layer = 7, .head = -1}); }).find("layer 1"),
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
