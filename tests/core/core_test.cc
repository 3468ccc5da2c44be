// Tensors, memory reuse, recording and the gradient check itself.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "qkv/base/error.h"
#include "qkv/core/autograd.h"
#include "qkv/core/grad_check.h"
#include "qkv/ops/ops.h"

namespace qkv {
namespace {

Tensor iota(const Shape& shape) { return reshape(Tensor::arange(shape.numel()), shape); }

TEST(Tensor, ViewsShareMemoryAndKnowTheirStrides) {
  const Tensor x = iota({2, 3, 4});
  const Tensor t = transpose(x, 0, 2);
  EXPECT_EQ(t.shape(), (Shape{4, 3, 2}));
  EXPECT_FALSE(t.is_contiguous());
  EXPECT_EQ(t.at({3, 1, 1}), x.at({1, 1, 3}));
  const Tensor s = slice(x, 1, 1, 3);
  EXPECT_EQ(s.at({1, 0, 2}), x.at({1, 1, 2}));
  x.f32()[0] = 42;
  EXPECT_EQ(t.at({0, 0, 0}), 42);
}

TEST(Tensor, ReshapeIsAViewWhenStridesAllow) {
  const Tensor x = iota({6, 8});
  const Tensor heads = reshape(slice(x, 1, 2, 6), {6, 2, 2});  // splitting the last axis of a slice needs no copy
  EXPECT_EQ(heads.f32(), x.f32() + 2);
  EXPECT_EQ(heads.at({5, 1, 1}), x.at({5, 5}));
  const Tensor copy = reshape(transpose(x, 0, 1), {48});
  EXPECT_EQ(copy.at({1}), x.at({1, 0}));
  EXPECT_THROW(reshape(x, {5, -1}), ShapeError);
}

TEST(Tensor, ConversionAndErrors) {
  const Tensor x = Tensor::from({1.5, 2.5}, {2}, DType::f64);
  EXPECT_EQ(x.to(DType::f32).at({1}), 2.5);
  EXPECT_THROW(x.f32(), ShapeError);
  EXPECT_THROW(x.item(), ShapeError);
  EXPECT_THROW(Tensor::from({1.0}, {2}), ShapeError);
  EXPECT_THROW(Tensor::empty({-1}), ShapeError);
  EXPECT_THROW(Tensor::empty({int64_t{1} << 40, int64_t{1} << 40}), ShapeError);
}

TEST(Memory, AStepReusesTheLastOnesMemory) {
  Rng rng(1);
  Tensor w = Tensor::randn({64, 64}, rng).set_requires_grad(true);
  const Tensor x = Tensor::randn({128, 64}, rng);
  const auto step = [&] {
    w.zero_grad();
    sum(mul(linear(x, w), linear(x, w))).backward();
  };
  step();
  step();
  const MemoryUse before = memory_use();
  for (int i = 0; i < 5; ++i) step();
  const MemoryUse after = memory_use();
  EXPECT_EQ(after.system_allocations, before.system_allocations);
  EXPECT_EQ(after.live, before.live);
}

TEST(Autograd, GradientsAddUpOverUsesAndCalls) {
  Tensor x = Tensor::from({3.0}, {1}).set_requires_grad(true);
  sum(mul(x, x) + x).backward();
  EXPECT_FLOAT_EQ(static_cast<float>(x.grad().item()), 7);  // 2x + 1
  sum(x).backward();
  EXPECT_FLOAT_EQ(static_cast<float>(x.grad().item()), 8);
  x.zero_grad();
  EXPECT_FALSE(x.grad().defined());
}

TEST(Autograd, SharedGradientsAreNotWrittenTwice) {
  // add() hands the same gradient tensor to both inputs; accumulating into one must not change the other.
  Tensor a = Tensor::from({1, 2}, {2}).set_requires_grad(true), b = Tensor::from({3, 4}, {2}).set_requires_grad(true);
  const Tensor s = a + b;
  sum(s + slice(concat({a, a}, 0), 0, 0, 2)).backward();
  EXPECT_EQ(a.grad().to_vector(), (std::vector<float>{2, 2}));
  EXPECT_EQ(b.grad().to_vector(), (std::vector<float>{1, 1}));
}

TEST(Autograd, NoGradRecordsNothing) {
  Tensor x = Tensor::from({2.0}, {1}).set_requires_grad(true);
  {
    NoGrad guard;
    EXPECT_FALSE(mul(x, x).requires_grad());
  }
  EXPECT_TRUE(mul(x, x).requires_grad());
  EXPECT_FALSE(mul(x, x).detach().requires_grad());
  EXPECT_THROW(Tensor::from({1.0}, {1}).backward(), Error);
}

TEST(Autograd, ARecordingIsUsedOnce) {
  Tensor x = Tensor::from({2.0}, {1}).set_requires_grad(true);
  const Tensor y = sum(mul(x, x));
  y.backward();
  EXPECT_THROW(y.backward(), Error);
}

TEST(GradCheck, FindsAWrongGradient) {
  Rng rng(5);
  const Tensor x = Tensor::randn({3}, rng);
  const auto right = [](const std::vector<Tensor>& in) { return mul(in[0], in[0]); };
  EXPECT_TRUE(grad_check(right, {x}).ok);
  const auto wrong = [](const std::vector<Tensor>& in) {
    return record("wrong", mul(in[0].detach(), in[0].detach()), {in[0]},
                  [x0 = in[0].detach()](const Tensor& d_out, Grads& d) { d.add(0, mul(d_out, x0)); });
  };
  const GradCheckResult result = grad_check(wrong, {x});
  EXPECT_FALSE(result.ok);
  EXPECT_NE(result.message.find("input 0 element 0"), std::string::npos);
}

}  // namespace
}  // namespace qkv
