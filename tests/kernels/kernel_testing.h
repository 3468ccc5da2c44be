// What the kernel tests share: random arrays, comparisons, one test run per SIMD target.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "qkv/base/parallel.h"
#include "qkv/base/rng.h"
#include "qkv/kernels/simd_target.h"

namespace qkv::kernels {

template <class T = float>
std::vector<T> random_values(int64_t n, uint64_t seed, double scale = 1) {
  Rng rng(seed);
  std::vector<T> v(static_cast<size_t>(n));
  for (auto& x : v) x = static_cast<T>(static_cast<float>(scale * rng.normal()));
  return v;
}

inline std::vector<double> as_double(const std::vector<float>& v) { return {v.begin(), v.end()}; }

/// |got - want| ≤ relative·|want| + absolute everywhere; infinities and NaN must agree.
template <class Want>
void expect_close(const std::vector<float>& got, const std::vector<Want>& want, double relative, double absolute,
                  const std::string& what = "") {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    const double g = static_cast<double>(got[i]), w = static_cast<double>(want[i]);
    if (std::isnan(w) || std::isinf(w)) {
      ASSERT_TRUE(std::isnan(w) ? std::isnan(g) : g == w) << what << " at " << i << ": " << g << " for " << w;
    } else {
      ASSERT_LE(std::abs(g - w), relative * std::abs(w) + absolute) << what << " at " << i << ": " << g << " for " << w;
    }
  }
}

/// Runs `compute` with 1, 2, 3 and 7 threads; its results must be the same bits.
inline void expect_same_bits_for_any_threads(const std::function<std::vector<float>()>& compute) {
  const int before = num_threads();
  std::vector<float> first;
  for (const int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    const auto result = compute();
    if (first.empty()) first = result;
    EXPECT_TRUE(std::equal(result.begin(), result.end(), first.begin(),
                           [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }))
        << threads << " threads";
  }
  set_num_threads(before);
}

/// A test that runs once on every instruction set this processor has.
class EveryTarget : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(force_simd_target(GetParam())); }
  void TearDown() override { force_simd_target(""); }
};
inline std::string target_name(const testing::TestParamInfo<std::string>& info) { return info.param; }

}  // namespace qkv::kernels
