// Dropout decisions of attention weights: as many as asked for, and neighbours that share a hash do not share a fate.
#include "qkv/kernels/dropout.h"

#include <gtest/gtest.h>

namespace qkv::kernels {
namespace {

TEST(WeightDropout, DropsTheShareAskedForAndNeighboursApart) {
  for (const double p : {0.1, 0.5, 0.9}) {
    const uint32_t threshold = weight_dropout_threshold(p);
    constexpr uint64_t kRows = 200;
    constexpr uint32_t kKeys = 1000;
    double dropped[2] = {}, both = 0, neighbours = 0;
    for (uint64_t row = 0; row < kRows; ++row) {
      bool last = false, last_but_one = false;
      for (uint32_t j = 0; j < kKeys; ++j) {
        const bool drop = !weight_dropout_keeps(7, 3, row, j, threshold);
        dropped[j % 2] += drop;
        if (j % 2 == 1) both += drop && last;
        if (j % 2 == 0 && j > 0) neighbours += drop && last_but_one;
        last_but_one = last;
        last = drop;
      }
    }
    const double pairs = kRows * kKeys / 2.0, five_sigma = 5 * 0.5 / 316;  // √(pairs) = 316
    EXPECT_NEAR(dropped[0] / pairs, p, five_sigma);
    EXPECT_NEAR(dropped[1] / pairs, p, five_sigma);
    EXPECT_NEAR(both / pairs, p * p, five_sigma);        // of one hash
    EXPECT_NEAR(neighbours / pairs, p * p, five_sigma);  // of two hashes
  }
}

TEST(WeightDropout, NeitherNothingNorEverythingUnlessAskedFor) {
  EXPECT_EQ(weight_dropout_threshold(0), 0u);
  EXPECT_EQ(weight_dropout_threshold(1e-9), 1u << 16);
  EXPECT_EQ(weight_dropout_threshold(0.5), 1u << 31);
  EXPECT_EQ(weight_dropout_threshold(1 - 1e-9), 65535u << 16);
}

}  // namespace
}  // namespace qkv::kernels
