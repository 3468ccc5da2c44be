// Optimizer updates against plain loops and against values computed by hand.
#include "qkv/kernels/optimizer_step.h"

#include "kernels/kernel_testing.h"

namespace qkv::kernels {
namespace {

template <class T>
struct State {
  std::vector<T> p, g, m, v;
  explicit State(int64_t n) : p(random_values<T>(n, 1)), g(random_values<T>(n, 2)), m(random_values<T>(n, 3)) {
    v = random_values<T>(n, 4);
    for (auto& x : v) x = std::abs(x);
  }
  ParameterSlice<T> slice() {
    return {.n = static_cast<int64_t>(p.size()), .p = p.data(), .g = g.data(), .m = m.data(), .v = v.data()};
  }
};

class OptimizerStepTest : public EveryTarget {};

TEST_P(OptimizerStepTest, AdamW) {
  for (const int64_t n : {1, 7, 16, 50, 17000})
    for (const bool l2 : {false, true})
      for (const int64_t step : {1, 2, 1000}) {
        const AdamWRule rule{.lr = 0.01, .weight_decay = 0.1, .step = step, .grad_scale = 0.5, .l2 = l2};
        State<float> fast(n);
        State<double> plain(n);
        adamw_step(rule, fast.slice());
        reference::adamw_step(rule, plain.slice());
        expect_close(fast.p, plain.p, 1e-6, 1e-6, "p");
        expect_close(fast.m, plain.m, 1e-6, 1e-6, "m");
        expect_close(fast.v, plain.v, 1e-6, 1e-7, "v");
      }
}

TEST_P(OptimizerStepTest, Sgd) {
  for (const int64_t n : {1, 16, 50, 17000})
    for (const double momentum : {0.0, 0.9})
      for (const bool nesterov : {false, true})
        for (const bool first : {false, true}) {
          const SgdRule rule{.lr = 0.1,
                             .momentum = momentum,
                             .dampening = nesterov ? 0 : 0.2,
                             .weight_decay = 0.01,
                             .nesterov = nesterov,
                             .first_step = first,
                             .grad_scale = 2};
          State<float> fast(n);
          State<double> plain(n);
          auto slice = fast.slice();
          if (momentum == 0) slice.m = nullptr;
          sgd_step(rule, slice);
          reference::sgd_step(rule, plain.slice());
          expect_close(fast.p, plain.p, 1e-6, 1e-6, "p");
          expect_close(fast.m, plain.m, 1e-6, 1e-6, "m");
        }
}

INSTANTIATE_TEST_SUITE_P(Targets, OptimizerStepTest, testing::ValuesIn(simd_targets()), target_name);

// On the first step Adam moves every parameter by lr·g/(|g| + eps) = lr·sign(g), after the decay.
TEST(OptimizerStepReference, FirstAdamWStep) {
  double p[] = {1.0, -2.0}, g[] = {0.3, -7.0}, m[] = {0, 0}, v[] = {0, 0};
  reference::adamw_step<double>({.lr = 0.1, .weight_decay = 0.5}, {.n = 2, .p = p, .g = g, .m = m, .v = v});
  EXPECT_NEAR(p[0], 0.95 * 1.0 - 0.1, 1e-8);
  EXPECT_NEAR(p[1], 0.95 * -2.0 + 0.1, 1e-8);
}

TEST(OptimizerStepReference, TwoSgdStepsWithMomentum) {
  double p = 1, g = 2, m = 0;
  SgdRule rule{.lr = 0.1, .momentum = 0.5, .first_step = true};
  reference::sgd_step<double>(rule, {.n = 1, .p = &p, .g = &g, .m = &m});
  EXPECT_DOUBLE_EQ(p, 0.8);
  rule.first_step = false;
  reference::sgd_step<double>(rule, {.n = 1, .p = &p, .g = &g, .m = &m});
  EXPECT_DOUBLE_EQ(p, 0.8 - 0.1 * 3.0);
}

}  // namespace
}  // namespace qkv::kernels
