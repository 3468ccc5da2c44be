// Forcing a SIMD target by name and going back.
#include "qkv/kernels/simd_target.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace qkv::kernels {
namespace {

TEST(SimdTarget, EveryListedTargetCanBeForced) {
  const auto targets = simd_targets();
  ASSERT_FALSE(targets.empty());
  EXPECT_EQ(simd_target(), targets.front());
  for (const auto& name : targets) {
    const ScopedSimdTarget scope(name);
    EXPECT_TRUE(scope.forced());
    EXPECT_EQ(simd_target(), name);
    EXPECT_EQ(simd_targets(), targets);
  }
  EXPECT_EQ(simd_target(), targets.front());
}

TEST(SimdTarget, UnknownNameChangesNothing) {
  EXPECT_FALSE(force_simd_target("NO_SUCH_TARGET"));
  EXPECT_EQ(simd_target(), simd_targets().front());
}

TEST(SimdTarget, PortableFallbackIsListed) {
  const auto targets = simd_targets();
  // What every processor of the architecture has; newer versions of Highway leave plain C++ out where there is such.
  const std::vector<std::string> portable = {"SCALAR", "EMU128", "NEON", "SSE2"};
  EXPECT_NE(std::find(portable.begin(), portable.end(), targets.back()), portable.end()) << targets.back();
}

}  // namespace
}  // namespace qkv::kernels
