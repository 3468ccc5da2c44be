// Elementwise kernels against plain loops in double.
#include "qkv/kernels/pointwise.h"

#include <limits>

#include "kernels/kernel_testing.h"
#include "qkv/kernels/dropout.h"

namespace qkv::kernels {
namespace {

constexpr Unary kUnaries[] = {Unary::relu, Unary::gelu, Unary::tanh, Unary::sigmoid, Unary::exp};

// Every magnitude and sign, and the places where formulas change over.
std::vector<float> probes() {
  std::vector<float> x = {0.0f,  -0.0f,  0.625f, -0.625f, 1e-30f, -1e-30f, 1e-8f,
                          88.0f, -88.0f, 60.0f,  -60.0f,  1.0f,   -1.0f};
  for (int i = -4000; i <= 4000; ++i) x.push_back(static_cast<float>(i) * 0.0031f);
  return x;
}

class PointwiseTest : public EveryTarget {};

TEST_P(PointwiseTest, UnaryForwardIsAccurate) {
  const auto x = probes();
  const auto exact = as_double(x);
  for (const Unary op : kUnaries) {
    std::vector<float> y(x.size());
    std::vector<double> want(x.size());
    const auto n = static_cast<int64_t>(x.size());
    unary_forward(op, x.data(), y.data(), n);
    reference::unary_forward(op, exact.data(), want.data(), n);
    // Without fused multiply-add (SSE4, scalar) the far tail of gelu, below 1e-8, loses a little.
    const double relative = op == Unary::gelu ? 1e-6 : 5e-7;
    expect_close(y, want, relative, op == Unary::gelu ? 1e-13 : 3e-38, "op " + std::to_string(static_cast<int>(op)));
  }
}

TEST_P(PointwiseTest, UnaryBackward) {
  const auto x = probes();
  const auto n = static_cast<int64_t>(x.size());
  const auto d_y = random_values(n, 2);
  for (const Unary op : kUnaries) {
    std::vector<float> saved(x);
    if (saves_output(op)) reference::unary_forward(op, x.data(), saved.data(), n);
    const auto saved_exact = as_double(saved), d_y_exact = as_double(d_y);
    std::vector<float> d_x(x.size());
    std::vector<double> want(x.size());
    unary_backward(op, saved.data(), d_y.data(), d_x.data(), n);
    reference::unary_backward(op, saved_exact.data(), d_y_exact.data(), want.data(), n);
    expect_close(d_x, want, 2e-6, 1e-6, "op " + std::to_string(static_cast<int>(op)));
  }
}

TEST_P(PointwiseTest, NonFiniteInputs) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> x(20, kInf), low(20, -kInf), nan(20, std::nanf(""));
  std::vector<float> y(20);
  const auto value = [&](Unary op, const std::vector<float>& in) {
    unary_forward(op, in.data(), y.data(), 20);
    for (const float v : y) EXPECT_TRUE(v == y[0] || std::isnan(v));
    return y[7];
  };
  EXPECT_EQ(value(Unary::exp, x), kInf);
  EXPECT_EQ(value(Unary::exp, low), 0.0f);
  EXPECT_EQ(value(Unary::tanh, x), 1.0f);
  EXPECT_EQ(value(Unary::tanh, low), -1.0f);
  EXPECT_EQ(value(Unary::sigmoid, x), 1.0f);
  EXPECT_EQ(value(Unary::sigmoid, low), 0.0f);
  EXPECT_EQ(value(Unary::gelu, x), kInf);
  EXPECT_EQ(value(Unary::relu, low), 0.0f);
  for (const Unary op : kUnaries) EXPECT_TRUE(std::isnan(value(op, nan))) << static_cast<int>(op);
}

TEST_P(PointwiseTest, DropoutDropsTheDocumentedElements) {
  for (const int64_t n : {1, 15, 4096, 4097, 40000}) {
    const auto x = random_values(n, 3), residual = random_values(n, 4);
    const DropoutRule rule{.seed = 99, .threshold = dropout_threshold(0.3), .keep_scale = 1 / 0.7f};
    std::vector<float> y(x.size()), want(x.size());
    dropout(rule, x.data(), y.data(), n);
    reference::dropout(rule, x.data(), want.data(), n);
    EXPECT_EQ(y, want);
    dropout_add(rule, x.data(), residual.data(), y.data(), n);
    reference::dropout_add(rule, x.data(), residual.data(), want.data(), n);
    expect_close(y, want, 1e-6, 1e-6);
    if (n < 40000) continue;
    const auto dropped = std::count_if(
        want.begin(), want.end(), [&](const float& v) { return v == residual[static_cast<size_t>(&v - want.data())]; });
    EXPECT_NEAR(static_cast<double>(dropped) / static_cast<double>(n), 0.3, 0.01);
  }
}

TEST_P(PointwiseTest, NoDropoutKeepsEverything) {
  const auto x = random_values(100, 5);
  std::vector<float> y(x.size());
  dropout({}, x.data(), y.data(), 100);
  EXPECT_EQ(x, y);
}

TEST_P(PointwiseTest, Add) {
  for (const int64_t n : {0, 1, 7, 16, 33, 20000}) {
    const auto x = random_values(n, 6), y = random_values(n, 7);
    auto got = y, want = y;
    add(x.data(), y.data(), got.data(), n);
    reference::add(x.data(), y.data(), want.data(), n);
    EXPECT_EQ(got, want);
  }
}

TEST_P(PointwiseTest, SameBitsForAnyNumberOfThreads) {
  const int64_t n = 300001;
  const auto x = random_values(n, 8);
  expect_same_bits_for_any_threads([&] {
    auto y = x;
    dropout({.seed = 5, .threshold = dropout_threshold(0.5), .keep_scale = 2}, x.data(), y.data(), n);
    return y;
  });
}

INSTANTIATE_TEST_SUITE_P(Targets, PointwiseTest, testing::ValuesIn(simd_targets()), target_name);

// The plain loops' derivatives, against differences of their values.
TEST(PointwiseReference, DerivativesMatchDifferences) {
  for (const Unary op : kUnaries)
    for (const double x : {-3.0, -1.1, -0.2, 0.4, 1.7, 2.9}) {
      const double h = 1e-6, points[] = {x - h, x, x + h}, one = 1;
      double y[3], d_x;
      reference::unary_forward(op, points, y, 3);
      const double saved = saves_output(op) ? y[1] : x;
      reference::unary_backward(op, &saved, &one, &d_x, 1);
      EXPECT_NEAR(d_x, (y[2] - y[0]) / (2 * h), 1e-7) << static_cast<int>(op) << " at " << x;
    }
}

}  // namespace
}  // namespace qkv::kernels
