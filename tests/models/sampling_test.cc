// Drawing tokens: the shares follow the scores, the cuts hold, the seed decides.
#include "qkv/models/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "qkv/base/error.h"

namespace qkv {
namespace {

std::vector<int> counts(const std::vector<float>& scores, const SampleOptions& options, int draws = 20000) {
  std::vector<int> n(scores.size(), 0);
  Rng rng(options.seed);
  for (int i = 0; i < draws; ++i) ++n[static_cast<size_t>(sample_token(scores, options, rng))];
  return n;
}

TEST(Sampling, FollowsTheSoftmax) {
  const std::vector<float> scores{0.0F, std::log(2.0F), std::log(5.0F)};
  const std::vector<int> n = counts(scores, {});
  EXPECT_NEAR(n[0] / 20000.0, 1.0 / 8, 0.01);
  EXPECT_NEAR(n[1] / 20000.0, 2.0 / 8, 0.012);
  EXPECT_NEAR(n[2] / 20000.0, 5.0 / 8, 0.012);
  // At temperature ½ the weights are squared.
  EXPECT_NEAR(counts(scores, {.temperature = 0.5})[2] / 20000.0, 25.0 / 30, 0.012);
}

TEST(Sampling, CutsToTheLikeliest) {
  const std::vector<float> scores{1.0F, 3.0F, 3.0F, 2.0F};
  EXPECT_EQ(counts(scores, {.temperature = 0})[1], 20000);  // ties: the smaller index
  const std::vector<int> two = counts(scores, {.top_k = 2});
  EXPECT_EQ(two[0] + two[3], 0);
  EXPECT_GT(two[1], 9000);
  EXPECT_EQ(counts(scores, {.top_k = 1})[1], 20000);
  // p = (.0545, .4026, .4026, .1481 + …): 0.4 is reached by one, 0.5 by two, 0.9 by three.
  EXPECT_EQ(counts(scores, {.top_p = 0.4})[1], 20000);
  const std::vector<int> half = counts(scores, {.top_p = 0.5});
  EXPECT_EQ(half[0] + half[3], 0);
  EXPECT_GT(half[2], 9000);
  EXPECT_EQ(counts(scores, {.top_p = 0.9})[0], 0);
  EXPECT_GT(counts(scores, {.top_p = 0.9})[3], 1000);
}

TEST(Sampling, RefusesNonsense) {
  const std::vector<float> scores{1.0F};
  Rng rng(1);
  EXPECT_THROW(sample_token({}, {}, rng), ConfigError);
  EXPECT_THROW(sample_token(scores, {.temperature = -1}, rng), ConfigError);
  EXPECT_THROW(sample_token(scores, {.top_k = -1}, rng), ConfigError);
  EXPECT_THROW(sample_token(scores, {.top_p = 0}, rng), ConfigError);
  EXPECT_EQ(sample_token(scores, {}, rng), 0);
}

}  // namespace
}  // namespace qkv
