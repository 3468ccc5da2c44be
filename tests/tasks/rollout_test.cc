// Rollout against a product written out.
#include "qkv/tasks/rollout.h"

#include <gtest/gtest.h>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "tasks/traced_layer.h"

namespace qkv {
namespace {

using testing::layer_of;
using testing::message_of;

std::vector<float> rollout(const std::vector<const AttentionTrace*>& layers) {
  return attention_rollout(layers).to_vector();
}

TEST(Rollout, IsTheProductOfMixedLayers) {
  // Heads (0.2, 0.8) and (0.6, 0.4) of row 0 have mean (0.4, 0.6); with the residual (0.7, 0.3).
  const AttentionTrace a = layer_of(0, 2, 2, {0.2f, 0.8f, 1, 0, 0.6f, 0.4f, 0, 1});
  const AttentionTrace b = layer_of(1, 1, 2, {0.5f, 0.5f, 0.9f, 0.1f});
  const std::vector<float> one = rollout({&a});
  EXPECT_NEAR(one[0], 0.7, 1e-6);
  EXPECT_NEAR(one[1], 0.3, 1e-6);
  EXPECT_NEAR(one[2], 0.25, 1e-6);
  EXPECT_NEAR(one[3], 0.75, 1e-6);
  // M_b = [[.75, .25], [.45, .55]]; R = M_b M_a.
  const std::vector<float> both = rollout({&a, &b});
  EXPECT_NEAR(both[0], 0.75 * 0.7 + 0.25 * 0.25, 1e-6);
  EXPECT_NEAR(both[1], 0.75 * 0.3 + 0.25 * 0.75, 1e-6);
  EXPECT_NEAR(both[2], 0.45 * 0.7 + 0.55 * 0.25, 1e-6);
  for (size_t r = 0; r < 2; ++r) EXPECT_NEAR(both[2 * r] + both[2 * r + 1], 1, 1e-6);
  EXPECT_NE(message_of<ConfigError>([] { rollout({}); }), "");
  AttentionTrace cross = b;
  cross.Lk = 3;
  EXPECT_NE(message_of<ConfigError>([&] { rollout({&a, &cross}); }), "");
}

TEST(Rollout, ARowThatSeesNothingPassesOnlyItselfOn) {
  const AttentionTrace a = layer_of(0, 1, 2, {0, 0, 0.25f, 0.25f});
  EXPECT_EQ(rollout({&a}), (std::vector<float>{1, 0, 0.25f, 0.75f}));
}

}  // namespace
}  // namespace qkv
