// Forcing a SIMD target by name and going back.
#include "qkv/kernels/simd_target.h"

#include <gtest/gtest.h>

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
  EXPECT_TRUE(targets.back() == "SCALAR" || targets.back() == "EMU128" || targets.back() == "NEON");
}

}  // namespace
}  // namespace qkv::kernels
