// Row kernels against plain loops in double.
#include "qkv/kernels/rowwise.h"

#include <limits>

#include "kernels/kernel_testing.h"

namespace qkv::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
struct Size {
  int64_t rows, cols;
};
constexpr Size kSizes[] = {{1, 1}, {3, 2}, {5, 7}, {4, 16}, {9, 33}, {2, 100}, {130, 65}, {7, 1003}};

class RowwiseTest : public EveryTarget {};

TEST_P(RowwiseTest, SoftmaxAndLogSoftmaxByLengths) {
  for (const auto [rows, cols] : kSizes)
    for (const bool by_length : {false, true}) {
      auto x = random_values(rows * cols, 1, 5);
      std::vector<int64_t> lens;
      for (int64_t r = 0; r < rows; ++r) lens.push_back(r % (cols + 2) - 1 + (r == 2 ? cols : 0));
      for (int64_t r = 0; by_length && r < rows; ++r)
        for (int64_t j = std::max<int64_t>(lens[static_cast<size_t>(r)], 0); j < cols; ++j)
          x[static_cast<size_t>(r * cols + j)] = std::nanf("");  // hidden: must not be read
      const auto exact = as_double(x);
      std::vector<float> y(x.size());
      std::vector<double> want(x.size());
      const int64_t* hidden = by_length ? lens.data() : nullptr;
      softmax_rows({.rows = rows, .cols = cols, .x = x.data(), .y = y.data(), .lens = hidden});
      reference::softmax_rows<double>(
          {.rows = rows, .cols = cols, .x = exact.data(), .y = want.data(), .lens = hidden});
      expect_close(y, want, 4e-6, 1e-38, "softmax");  // x - max is rounded, up to 40 · 2⁻²⁴
      log_softmax_rows({.rows = rows, .cols = cols, .x = x.data(), .y = y.data(), .lens = hidden});
      reference::log_softmax_rows<double>(
          {.rows = rows, .cols = cols, .x = exact.data(), .y = want.data(), .lens = hidden});
      expect_close(y, want, 1e-6, 2e-6, "log softmax");
    }
}

TEST_P(RowwiseTest, SoftmaxOfLargeAndHiddenScores) {
  std::vector<float> x = {1e4f, 1e4f, -1e4f, -kInf, 3.0f, -kInf, -kInf, 2.0f}, y(8);
  softmax_rows({.rows = 2, .cols = 4, .x = x.data(), .y = y.data()});
  expect_close(y, std::vector<float>{0.5f, 0.5f, 0, 0, 0.7310585786f, 0, 0, 0.2689414214f}, 1e-6, 0);
  auto in_place = x;
  softmax_rows({.rows = 2, .cols = 4, .x = in_place.data(), .y = in_place.data()});
  EXPECT_EQ(in_place, y);
}

TEST_P(RowwiseTest, SoftmaxBackward) {
  for (const auto [rows, cols] : kSizes) {
    const auto x = random_values(rows * cols, 2, 2), d_y = random_values(rows * cols, 3);
    std::vector<float> y(x.size()), d_x(x.size());
    std::vector<double> want(x.size());
    const auto d_y_exact = as_double(d_y);
    softmax_rows({.rows = rows, .cols = cols, .x = x.data(), .y = y.data()});
    auto y_exact = as_double(y);
    softmax_rows_backward({.rows = rows, .cols = cols, .y = y.data(), .d_y = d_y.data(), .d_x = d_x.data()});
    reference::softmax_rows_backward<double>(
        {.rows = rows, .cols = cols, .y = y_exact.data(), .d_y = d_y_exact.data(), .d_x = want.data()});
    expect_close(d_x, want, 1e-5, 1e-6);
    log_softmax_rows({.rows = rows, .cols = cols, .x = x.data(), .y = y.data()});
    if (cols > 2) y[1] = -kInf;
    y_exact = as_double(y);
    log_softmax_rows_backward({.rows = rows, .cols = cols, .y = y.data(), .d_y = d_y.data(), .d_x = d_x.data()});
    reference::log_softmax_rows_backward<double>(
        {.rows = rows, .cols = cols, .y = y_exact.data(), .d_y = d_y_exact.data(), .d_x = want.data()});
    expect_close(d_x, want, 1e-5, 1e-5);
  }
}

template <class T>
struct Norm {
  std::vector<T> x, residual, sum, gamma, beta, y, mean, rstd, d_y, d_sum, d_s, d_gamma, d_beta;

  Norm(int64_t rows, int64_t cols, bool fused, bool affine) {
    x = random_values<T>(rows * cols, 4);
    for (auto& v : x) v += T(3);
    residual = random_values<T>(rows * cols, 5);
    gamma = random_values<T>(cols, 6);
    beta = random_values<T>(cols, 7);
    d_y = random_values<T>(rows * cols, 8);
    d_sum = random_values<T>(rows * cols, 9);
    d_gamma = random_values<T>(cols, 10);
    d_beta = random_values<T>(cols, 11);
    sum = y = d_s = std::vector<T>(x.size());
    mean = rstd = std::vector<T>(static_cast<size_t>(rows));
    forward = {.rows = rows,
               .cols = cols,
               .x = x.data(),
               .residual = fused ? residual.data() : nullptr,
               .sum = fused ? sum.data() : nullptr,
               .gamma = affine ? gamma.data() : nullptr,
               .beta = affine ? beta.data() : nullptr,
               .y = y.data(),
               .mean = mean.data(),
               .rstd = rstd.data()};
    backward = {.rows = rows,
                .cols = cols,
                .s = fused ? sum.data() : x.data(),
                .gamma = affine ? gamma.data() : nullptr,
                .mean = mean.data(),
                .rstd = rstd.data(),
                .d_y = d_y.data(),
                .d_sum = fused ? d_sum.data() : nullptr,
                .d_s = d_s.data(),
                .d_gamma = affine ? d_gamma.data() : nullptr,
                .d_beta = affine ? d_beta.data() : nullptr};
  }
  LayerNorm<T> forward;
  LayerNormBackward<T> backward;
};

TEST_P(RowwiseTest, LayerNormForwardAndBackward) {
  for (const auto [rows, cols] : kSizes)
    for (const bool fused : {false, true})
      for (const bool affine : {false, true}) {
        if (cols < 3) continue;  // of two numbers, only the sign is left: no derivative to compare
        Norm<float> fast(rows, cols, fused, affine);
        Norm<double> plain(rows, cols, fused, affine);
        layer_norm(fast.forward);
        reference::layer_norm(plain.forward);
        expect_close(fast.y, plain.y, 1e-5, 2e-5, "y");
        expect_close(fast.mean, plain.mean, 1e-6, 1e-6, "mean");
        expect_close(fast.rstd, plain.rstd, 1e-5, 0, "rstd");
        if (fused) expect_close(fast.sum, plain.sum, 1e-6, 1e-6, "sum");
        layer_norm_backward(fast.backward);
        reference::layer_norm_backward(plain.backward);
        expect_close(fast.d_s, plain.d_s, 1e-4, 2e-4, "d_s");
        expect_close(fast.d_gamma, plain.d_gamma, 1e-5, 2e-4, "d_gamma");
        expect_close(fast.d_beta, plain.d_beta, 1e-5, 1e-4, "d_beta");
      }
}

template <class T>
struct Entropy {
  std::vector<T> logits, loss, lse, d_logits, d_loss;
  std::vector<int64_t> targets;
  CrossEntropy<T> args;

  Entropy(int64_t rows, int64_t V, T smoothing, bool weighted) {
    logits = random_values<T>(rows * V, 12, 4);
    d_loss = random_values<T>(rows, 13);
    loss = lse = std::vector<T>(static_cast<size_t>(rows));
    d_logits = std::vector<T>(logits.size(), T(7));
    for (int64_t r = 0; r < rows; ++r) targets.push_back(r == 1 ? -100 : r == 2 ? V : (r * 7) % V);
    args = {.rows = rows,
            .V = V,
            .logits = logits.data(),
            .targets = targets.data(),
            .smoothing = smoothing,
            .loss = loss.data(),
            .lse = lse.data(),
            .d_logits = d_logits.data(),
            .d_loss = weighted ? d_loss.data() : nullptr,
            .d_scale = T(0.25)};
  }
};

TEST_P(RowwiseTest, CrossEntropyValueAndGradient) {
  for (const auto [rows, cols] : kSizes)
    for (const float smoothing : {0.0f, 0.1f})
      for (const bool weighted : {false, true}) {
        Entropy<float> fast(rows, cols, smoothing, weighted);
        Entropy<double> plain(rows, cols, static_cast<double>(smoothing), weighted);
        cross_entropy(fast.args);
        reference::cross_entropy(plain.args);
        expect_close(fast.loss, plain.loss, 1e-6, 2e-6, "loss");
        expect_close(fast.lse, plain.lse, 1e-6, 1e-6, "lse");
        expect_close(fast.d_logits, plain.d_logits, 1e-5, 1e-6, "d_logits");
        const auto at_once = fast.d_logits;
        std::fill(fast.d_logits.begin(), fast.d_logits.end(), 5.0f);
        cross_entropy_backward(fast.args);
        expect_close(fast.d_logits, plain.d_logits, 1e-5, 2e-6, "d_logits later");
        fast.args.d_logits = fast.logits.data();  // over the logits themselves
        cross_entropy(fast.args);
        EXPECT_EQ(fast.logits, at_once);
        expect_close(fast.loss, plain.loss, 1e-6, 2e-6, "loss in place");
      }
}

TEST_P(RowwiseTest, SumRows) {
  for (const auto [rows, cols] : kSizes)
    for (const bool accumulate : {false, true}) {
      const auto x = random_values(rows * cols, 14);
      auto got = random_values(cols, 15), want = got;
      sum_rows({.rows = rows, .cols = cols, .x = x.data(), .out = got.data(), .accumulate = accumulate});
      reference::sum_rows<float>(
          {.rows = rows, .cols = cols, .x = x.data(), .out = want.data(), .accumulate = accumulate});
      expect_close(got, want, 1e-5, 2e-5);
    }
}

TEST_P(RowwiseTest, SameBitsForAnyNumberOfThreads) {
  expect_same_bits_for_any_threads([] {
    Norm<float> n(1000, 70, true, true);
    layer_norm(n.forward);
    layer_norm_backward(n.backward);
    Entropy<float> e(300, 50, 0.1f, true);
    cross_entropy(e.args);
    std::vector<float> columns(70);
    sum_rows({.rows = 1000, .cols = 70, .x = n.x.data(), .out = columns.data()});
    std::vector<float> all;
    for (const auto* v : {&n.y, &n.d_s, &n.d_gamma, &n.d_beta, &e.loss, &e.d_logits, &columns})
      all.insert(all.end(), v->begin(), v->end());
    return all;
  });
}

INSTANTIATE_TEST_SUITE_P(Targets, RowwiseTest, testing::ValuesIn(simd_targets()), target_name);

// The plain loops' gradients, against differences of a random probe of their values.
TEST(RowwiseReference, LayerNormGradientMatchesDifferences) {
  const int64_t rows = 3, cols = 5;
  Norm<double> n(rows, cols, true, true);
  const auto value = [&] {
    reference::layer_norm(n.forward);
    double total = 0;
    for (size_t i = 0; i < n.y.size(); ++i) total += n.y[i] * n.d_y[i] + n.sum[i] * n.d_sum[i];
    return total;
  };
  value();
  n.d_gamma.assign(cols, 0);
  n.d_beta.assign(cols, 0);
  reference::layer_norm_backward(n.backward);
  const auto difference = [&](double& x) {
    const double h = 1e-6, kept = x;
    x = kept + h;
    const double up = value();
    x = kept - h;
    const double down = value();
    x = kept;
    return (up - down) / (2 * h);
  };
  for (size_t i = 0; i < n.x.size(); ++i) EXPECT_NEAR(n.d_s[i], difference(n.x[i]), 1e-6);
  for (size_t j = 0; j < n.gamma.size(); ++j) {
    EXPECT_NEAR(n.d_gamma[j], difference(n.gamma[j]), 1e-6);
    EXPECT_NEAR(n.d_beta[j], difference(n.beta[j]), 1e-6);
  }
}

TEST(RowwiseReference, CrossEntropyGradientMatchesDifferences) {
  Entropy<double> e(4, 6, 0.2, true);
  reference::cross_entropy(e.args);
  const auto gradient = e.d_logits;
  e.args.d_logits = nullptr;
  for (size_t i = 0; i < e.logits.size(); ++i) {
    const double h = 1e-6, kept = e.logits[i];
    double value[2];
    for (const int side : {0, 1}) {
      e.logits[i] = kept + (side ? h : -h);
      reference::cross_entropy(e.args);
      value[side] = 0;
      for (size_t r = 0; r < e.loss.size(); ++r) value[side] += e.loss[r] * e.d_loss[r];
    }
    e.logits[i] = kept;
    EXPECT_NEAR(gradient[i], (value[1] - value[0]) / (2 * h), 1e-6);
  }
}

}  // namespace
}  // namespace qkv::kernels
