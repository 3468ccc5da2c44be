// gemm against plain loops: every layout, odd sizes, every SIMD target, any number of threads.
#include "qkv/kernels/gemm/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "qkv/base/parallel.h"
#include "qkv/base/rng.h"
#include "qkv/kernels/simd_target.h"

namespace qkv::kernels {
namespace {

struct Case {
  int64_t M, N, K;
  bool ta = false, tb = false, bias = false, accumulate = false, pre = false;
  Act activation = Act::none;
};

std::string name(const Case& c) {
  return std::string(c.ta ? "T" : "N") + (c.tb ? "T" : "N") + " " + std::to_string(c.M) + "x" + std::to_string(c.N) +
         "x" + std::to_string(c.K) + (c.bias ? " bias" : "") + (c.accumulate ? " accumulate" : "") +
         (c.pre ? " pre" : "") + " act " + std::to_string(static_cast<int>(c.activation));
}

// Operands with row strides a little longer than the rows, and NaN between the rows: nothing may read it.
struct Problem {
  std::vector<float> a, b, c, pre, bias;
  GemmArgs args;

  explicit Problem(const Case& s) {
    Rng rng(static_cast<uint64_t>(s.M * 1000003 + s.N * 1009 + s.K));
    const int64_t a_rows = s.ta ? s.K : s.M, a_cols = s.ta ? s.M : s.K;
    const int64_t b_rows = s.tb ? s.N : s.K, b_cols = s.tb ? s.K : s.N;
    a = matrix(a_rows, a_cols, rng);
    b = matrix(b_rows, b_cols, rng);
    c = matrix(s.M, s.N, rng);
    pre = std::vector<float>(c.size(), 7.0f);
    for (int64_t j = 0; j < s.N; ++j) bias.push_back(static_cast<float>(rng.normal()));
    args = {.M = s.M,
            .N = s.N,
            .K = s.K,
            .a = a.data(),
            .lda = a_cols + kGap,
            .a_transposed = s.ta,
            .b = b.data(),
            .ldb = b_cols + kGap,
            .b_transposed = s.tb,
            .c = c.data(),
            .ldc = s.N + kGap,
            .accumulate = s.accumulate,
            .bias = s.bias ? bias.data() : nullptr,
            .activation = s.activation,
            .pre = s.pre ? pre.data() : nullptr};
  }

  static constexpr int64_t kGap = 3;
  static std::vector<float> matrix(int64_t rows, int64_t cols, Rng& rng) {
    std::vector<float> m(static_cast<size_t>(rows * (cols + kGap)), std::nanf(""));
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j)
        m[static_cast<size_t>(i * (cols + kGap) + j)] = static_cast<float>(rng.normal());
    return m;
  }
};

void expect_close(const std::vector<float>& got, const std::vector<float>& want, double tolerance, const Case& s) {
  ASSERT_EQ(got.size(), want.size());
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(std::isnan(got[i]), std::isnan(want[i])) << name(s) << " at " << i << ": the gap between rows changed";
    if (!std::isnan(want[i]))
      worst = std::max(worst, std::abs(static_cast<double>(got[i]) - static_cast<double>(want[i])));
  }
  EXPECT_LE(worst, tolerance) << name(s);
}

void check(const Case& s) {
  Problem fast(s), plain(s);
  gemm(fast.args);
  reference::gemm(plain.args);
  const double tolerance = 2e-6 * std::sqrt(static_cast<double>(s.K) + 1) * 8 + 2e-6;
  expect_close(fast.c, plain.c, tolerance, s);
  if (s.pre) expect_close(fast.pre, plain.pre, tolerance, s);
}

class GemmTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(force_simd_target(GetParam())); }
  void TearDown() override { force_simd_target(""); }
};

TEST_P(GemmTest, EverySmallShape) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      for (const int64_t M : {1, 2, 3, 4, 5, 7, 14, 15, 29, 43})
        for (const int64_t N : {1, 3, 16, 17, 32, 33, 70, 192})
          for (const int64_t K : {1, 7, 33, 64}) check({.M = M, .N = N, .K = K, .ta = ta, .tb = tb});
}

TEST_P(GemmTest, BlocksOfEveryDimension) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      check({.M = 61, .N = 150, .K = 530, .ta = ta, .tb = tb, .bias = true});
      check({.M = 240, .N = 70, .K = 300, .ta = ta, .tb = tb, .bias = true, .pre = true, .activation = Act::relu});
      check({.M = 460, .N = 33, .K = 40, .ta = ta, .tb = tb, .accumulate = true});
      check({.M = 9, .N = 40, .K = 1500, .ta = ta, .tb = tb, .bias = true});
      check({.M = 260, .N = 33, .K = 2100, .ta = ta, .tb = tb, .bias = true});
      check({.M = 3, .N = 700, .K = 300, .ta = ta, .tb = tb, .bias = true});
      check({.M = 258, .N = 2061, .K = 20, .ta = ta, .tb = tb, .bias = true});
      check({.M = 500, .N = 150, .K = 1100, .ta = ta, .tb = tb, .accumulate = true});  // several parts of a packed A
    }
  check({.M = 257, .N = 2050, .K = 520, .tb = true, .accumulate = true});
}

TEST_P(GemmTest, AFewRowsAgainstALargeB) {
  for (const bool ta : {false, true})
    for (int64_t M = 5; M <= 15; ++M)
      check({.M = M, .N = 150, .K = 530, .ta = ta, .bias = true, .activation = Act::relu});
  check({.M = 30, .N = 600, .K = 500});
  for (const int64_t M : {8, 20, 30}) check({.M = M, .N = 1021, .K = 270, .bias = true});  // rows of B 4 KiB apart
  check({.M = 42, .N = 600, .K = 500, .accumulate = true});
}

TEST_P(GemmTest, BiasActivationPreAccumulate) {
  for (const bool tb : {false, true})
    for (const int64_t M : {1, 4, 20, 50}) {
      for (const auto activation : {Act::none, Act::relu, Act::gelu, Act::tanh, Act::sigmoid})
        check({.M = M, .N = 45, .K = 19, .tb = tb, .bias = true, .pre = true, .activation = activation});
      check({.M = M, .N = 45, .K = 19, .tb = tb, .activation = Act::gelu});
      check({.M = M, .N = 45, .K = 19, .tb = tb, .accumulate = true});
      check({.M = M, .N = 45, .K = 300, .tb = tb, .accumulate = true});
    }
}

TEST_P(GemmTest, EmptySizes) {
  check({.M = 5, .N = 7, .K = 0, .bias = true, .pre = true, .activation = Act::sigmoid});
  check({.M = 5, .N = 7, .K = 0});
  check({.M = 5, .N = 7, .K = 0, .accumulate = true});
  check({.M = 0, .N = 7, .K = 3});
  check({.M = 5, .N = 0, .K = 3});
}

TEST_P(GemmTest, SameBitsForAnyNumberOfThreads) {
  const int before = num_threads();
  for (const Case& s : {Case{.M = 100, .N = 300, .K = 600, .bias = true, .activation = Act::gelu},
                        Case{.M = 500, .N = 130, .K = 300}, Case{.M = 300, .N = 100, .K = 4100, .ta = true},
                        Case{.M = 20, .N = 20, .K = 9000, .ta = true}, Case{.M = 1, .N = 1500, .K = 400},
                        Case{.M = 2, .N = 1500, .K = 400, .tb = true}, Case{.M = 300, .N = 300, .K = 100, .tb = true},
                        Case{.M = 270, .N = 2090, .K = 550, .bias = true, .activation = Act::relu},
                        Case{.M = 40, .N = 500, .K = 70, .accumulate = true}, Case{.M = 9, .N = 700, .K = 300},
                        Case{.M = 33, .N = 900, .K = 310, .bias = true}}) {
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 2, 3, 7}) {
      set_num_threads(threads);
      Problem p(s);
      gemm(p.args);
      for (auto& x : p.c)
        if (std::isnan(x)) x = 0;
      results.push_back(p.c);
    }
    for (const auto& r : results) EXPECT_EQ(r, results[0]) << name(s);
  }
  set_num_threads(before);
}

TEST_P(GemmTest, NonFiniteInputsReachTheirOwnRowsOnly) {
  Problem p({.M = 30, .N = 40, .K = 20});
  p.a[5 * (20 + Problem::kGap) + 3] = std::numeric_limits<float>::infinity();
  gemm(p.args);
  for (int64_t i = 0; i < 30; ++i)
    for (int64_t j = 0; j < 40; ++j)
      EXPECT_EQ(std::isfinite(p.c[static_cast<size_t>(i * (40 + Problem::kGap) + j)]), i != 5);
}

INSTANTIATE_TEST_SUITE_P(Targets, GemmTest, testing::ValuesIn(simd_targets()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace qkv::kernels
