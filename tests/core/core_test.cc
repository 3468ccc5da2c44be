// Tensors, memory reuse, recording and the gradient check itself.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <type_traits>

#include "qkv/base/budget.h"
#include "qkv/base/error.h"
#include "qkv/core/autograd.h"
#include "qkv/core/grad_check.h"
#include "qkv/ops/ops.h"

namespace qkv {
namespace {

Tensor iota(const Shape& shape) { return reshape(Tensor::arange(shape.numel()), shape); }

TEST(Tensor, ViewsShareMemoryAndKnowTheirStrides) {
  Tensor x = iota({2, 3, 4});
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
  // 32 bits address neither 2³⁰ floats nor a block of 3.6 GB, which has no size class either.
  if constexpr (sizeof(size_t) == 4) {
    EXPECT_THROW(Tensor::empty({int64_t{1} << 30}), ShapeError);
    EXPECT_THROW(Storage(size_t{3'600'000'000u}), std::bad_alloc);
  }
}

TEST(Tensor, AConstTensorGivesItsNumbersForReading) {
  static_assert(std::is_same_v<decltype(std::declval<const Tensor&>().f32()), const float*>);
  static_assert(std::is_same_v<decltype(std::declval<Tensor&>().f32()), float*>);
  static_assert(std::is_same_v<decltype(std::declval<const Tensor&>().data<double>()), const double*>);
  static_assert(std::is_same_v<decltype(std::declval<Tensor&>().data<double>()), double*>);
  const Tensor x = iota({3});
  Tensor copy = x;  // shares the numbers
  copy.f32()[1] = 7;
  EXPECT_EQ(x.f32()[1], 7);
}

TEST(Tensor, AnUndefinedTensorNamesTheCall) {
  Tensor none;
  const auto message = [](const std::function<void()>& call) -> std::string {
    try {
      call();
    } catch (const ShapeError& e) {
      return e.what();
    }
    return "no error";
  };
  const std::vector<std::pair<std::string, std::function<void()>>> calls{
      {"shape", [&] { (void)none.shape(); }},
      {"strides", [&] { (void)none.strides(); }},
      {"rank", [&] { (void)none.rank(); }},
      {"dim", [&] { (void)none.dim(0); }},
      {"numel", [&] { (void)none.numel(); }},
      {"dtype", [&] { (void)none.dtype(); }},
      {"is_contiguous", [&] { (void)none.is_contiguous(); }},
      {"data", [&] { (void)none.f32(); }},
      {"item", [&] { (void)none.item(); }},
      {"at", [&] { (void)none.at({0}); }},
      {"to", [&] { (void)none.to(DType::f64); }},
      {"detach", [&] { (void)none.detach(); }},
      {"clone", [&] { (void)none.clone(); }},
      {"as_strided", [&] { (void)none.as_strided({}, {}, 0); }},
      {"storage_offset", [&] { (void)none.storage_offset(); }},
      {"owns_memory_alone", [&] { (void)none.owns_memory_alone(); }},
      {"copy_from", [&] { none.copy_from(Tensor::zeros({1})); }},
      {"add_from", [&] { none.add_from(Tensor::zeros({1})); }},
      {"to_vector", [&] { (void)none.to_vector(); }},
      {"to_doubles", [&] { (void)none.to_doubles(); }},
      {"fill", [&] { none.fill(0); }},
      {"requires_grad", [&] { (void)none.requires_grad(); }},
      {"set_requires_grad", [&] { none.set_requires_grad(true); }},
      {"grad", [&] { (void)none.grad(); }},
      {"set_grad", [&] { none.zero_grad(); }},
      {"backward", [&] { none.backward(); }},
      {"node", [&] { (void)none.node(); }},
      {"output_index", [&] { (void)none.output_index(); }},
  };
  for (const auto& [name, call] : calls) {
    EXPECT_NE(message(call).find("." + name + "() of an undefined tensor"), std::string::npos) << message(call);
  }
  EXPECT_NE(message([&] { (void)(none / 2); }).find("undefined tensor"), std::string::npos);
}

TEST(Tensor, AdoptedMemoryIsSharedAndReleasedOnce) {
  std::vector<float> memory{1, 2, 3, 4, 5, 6};
  int released = 0;
  const auto release = [&](void* p) {
    EXPECT_EQ(p, memory.data());
    ++released;
  };
  {
    Tensor view;
    {
      const Tensor x = Tensor::adopt(memory.data(), {2, 3}, release);
      EXPECT_EQ(x.at({1, 0}), 4);
      EXPECT_FALSE(x.owns_memory_alone());  // the former owner may still look
      view = slice(x, 0, 1, 2);
      const Tensor turned = Tensor::adopt(memory.data() + 5, {3, 2}, {}, {-2, -1});
      EXPECT_EQ(turned.clone().to_vector(), (std::vector<float>{6, 5, 4, 3, 2, 1}));
      EXPECT_EQ(sum(turned, 0).to_vector(), (std::vector<float>{12, 9}));
    }
    EXPECT_EQ(released, 0);
    view.fill(9);
    EXPECT_EQ(memory[3], 9);
  }
  EXPECT_EQ(released, 1);
  EXPECT_THROW(Tensor::adopt(memory.data(), {-1}, release), ShapeError);
  EXPECT_EQ(released, 2);
  EXPECT_THROW(Tensor::adopt(memory.data(), {2, 3}, release, {1}), ShapeError);
  EXPECT_THROW(Tensor::adopt(static_cast<double*>(nullptr), {1}, {}), ShapeError);
  auto* crooked = reinterpret_cast<double*>(reinterpret_cast<char*>(memory.data()) + 1);
  EXPECT_THROW(Tensor::adopt(crooked, {1}, {}), ShapeError);
}

TEST(Tensor, GradientsOfAdoptedMemoryLeaveItAlone) {
  std::vector<float> given{1, 1};
  Tensor x = Tensor::from({1, 2}, {2}).set_requires_grad(true);
  (x * 2 + x).backward(Tensor::adopt(given.data(), {2}, {}));
  EXPECT_EQ(x.grad().to_vector(), (std::vector<float>{3, 3}));
  EXPECT_EQ(given, (std::vector<float>{1, 1}));
}

TEST(Tensor, ArithmeticWithScalarsOnEitherSide) {
  const Tensor x = Tensor::from({1, 2, 4}, {3});
  using Values = std::vector<float>;
  EXPECT_EQ((x + 1).to_vector(), (Values{2, 3, 5}));
  EXPECT_EQ((1 + x).to_vector(), (Values{2, 3, 5}));
  EXPECT_EQ((x - 1).to_vector(), (Values{0, 1, 3}));
  EXPECT_EQ((1 - x).to_vector(), (Values{0, -1, -3}));
  EXPECT_EQ((x * 3).to_vector(), (Values{3, 6, 12}));
  EXPECT_EQ((x / 3).to_vector(), (Values{1.0f / 3, 2.0f / 3, 4.0f / 3}));  // a division, not a product with 1/3
  EXPECT_EQ((4 / x).to_vector(), (Values{4, 2, 1}));
  EXPECT_EQ((x / x).to_vector(), (Values{1, 1, 1}));
  EXPECT_EQ((-x).to_vector(), (Values{-1, -2, -4}));
  const auto all = [](const std::vector<Tensor>& in) { return (2 - in[0]) / (in[0] + 3) - 5 / (-in[0] / 2 - 1); };
  const GradCheckResult result = grad_check(all, {x});
  EXPECT_TRUE(result.ok) << result.message;
}

TEST(Tensor, Prints) {
  const auto text = [](const Tensor& t) {
    std::ostringstream out;
    out << t;
    return out.str();
  };
  EXPECT_EQ(text(Tensor()), "undefined");
  EXPECT_EQ(text(Tensor::full({}, 2.5)), "2.5000 f32 []");
  EXPECT_EQ(text(iota({2, 3}) - 3), "[[-3 -2 -1]\n [ 0  1  2]] f32 [2,3]");
  EXPECT_EQ(text(Tensor::from({0.5, -10}, {2}, DType::f64)), "[  0.5000 -10.0000] f64 [2]");
  EXPECT_EQ(text(Tensor::from({1e-5, 1}, {2})), "[1.0000e-05 1.0000e+00] f32 [2]");
  EXPECT_EQ(text(Tensor::from({NAN, -INFINITY, 1}, {3})), "[ nan -inf    1] f32 [3]");
  EXPECT_EQ(text(iota({2, 2, 1})), "[[[0]\n  [1]]\n\n [[2]\n  [3]]] f32 [2,2,1]");
  EXPECT_EQ(text(Tensor::zeros({0, 3})), "[] f32 [0,3]");
  EXPECT_EQ(text(iota({1001})), "[   0    1    2 ...  998  999 1000] f32 [1001]");
  EXPECT_EQ(text(transpose(iota({2, 600}), 0, 1)),
            "[[   0  600]\n [   1  601]\n [   2  602]\n ...\n [ 597 1197]\n [ 598 1198]\n [ 599 1199]] f32 [600,2]");
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

TEST(Autograd, AGraphOfManyOpsIsFreedWithoutDeepRecursion) {
  Tensor x = Tensor::zeros({1});
  x.set_requires_grad(true);
  Tensor y = x;
  for (int i = 0; i < 300000; ++i) y = y + x;
  y = Tensor();
  EXPECT_FALSE(x.grad().defined());
}

TEST(Tensor, RandomNumbersStopWithTheirBudget) {
  const Budget budget(std::chrono::milliseconds(30), int64_t{1} << 32);
  const BudgetScope scope(&budget);
  Rng rng(1);
  EXPECT_THROW(Tensor::randn({1 << 26}, rng), BudgetError);  // more than a second of numbers
}

}  // namespace
}  // namespace qkv
