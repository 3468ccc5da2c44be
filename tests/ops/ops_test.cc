// Every basic op: gradient check in f64 with a random probe, f32 against f64, odd sizes, error messages.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "qkv/core/grad_check.h"
#include "qkv/ops/attention.h"
#include "qkv/ops/ops.h"

namespace qkv {
namespace {

using Fn = std::function<Tensor(const std::vector<Tensor>&)>;

struct OpCase {
  const char* name;
  std::vector<Shape> inputs;
  Fn fn;
};

const int64_t kIds[] = {2, 0, 2, 1};
const int64_t kRows[] = {1, -1, 0, 1};
const int64_t kTargets[] = {3, 0, -1, 4, 2, 2};
const int64_t kLens[] = {2, 0}, kRowLens[] = {1, 3, 2, 4};

const std::vector<OpCase>& cases() {
  static const std::vector<OpCase> all = {
      {"add", {{2, 3}, {2, 3}}, [](const auto& x) { return add(x[0], x[1]); }},
      {"add broadcast", {{2, 1, 3}, {4, 1}}, [](const auto& x) { return add(x[0], x[1]); }},
      {"sub broadcast", {{3}, {2, 3}}, [](const auto& x) { return sub(x[0], x[1]); }},
      {"mul broadcast", {{2, 3, 1}, {5}}, [](const auto& x) { return mul(x[0], x[1]); }},
      {"mul transposed", {{2, 3}, {3, 2}}, [](const auto& x) { return mul(x[0], transpose(x[1], 0, 1)); }},
      {"div", {{2, 3}, {3}}, [](const auto& x) { return div(x[0], affine(mul(x[1], x[1]), 1, 1)); }},
      {"affine", {{7}}, [](const auto& x) { return affine(x[0], -2.5, 3); }},
      {"exp", {{5}}, [](const auto& x) { return exp(x[0]); }},
      {"log", {{5}}, [](const auto& x) { return log(affine(mul(x[0], x[0]), 1, 0.5)); }},
      {"tanh", {{17}}, [](const auto& x) { return tanh(x[0]); }},
      {"sigmoid", {{17}}, [](const auto& x) { return sigmoid(x[0]); }},
      {"relu", {{17}}, [](const auto& x) { return relu(x[0]); }},
      {"gelu", {{17}}, [](const auto& x) { return gelu(x[0]); }},
      {"dropout", {{3, 50}}, [](const auto& x) { return dropout(x[0], 0.3, 9); }},
      {"sum", {{3, 4}}, [](const auto& x) { return sum(x[0]); }},
      {"mean", {{3, 4}}, [](const auto& x) { return mean(x[0]); }},
      {"sum axis 0", {{3, 4, 2}}, [](const auto& x) { return sum(x[0], 0); }},
      {"sum axis 1", {{3, 4, 2}}, [](const auto& x) { return sum(x[0], 1, true); }},
      {"mean axis -1", {{3, 4, 2}}, [](const auto& x) { return mean(x[0], -1); }},
      {"sum_to",
       {{3, 4, 2}},
       [](const auto& x) {
         return sum_to(x[0], {4, 1});
       }},
      {"reshape",
       {{3, 4}},
       [](const auto& x) {
         return reshape(transpose(x[0], 0, 1), {2, -1});
       }},
      {"permute",
       {{2, 3, 4}},
       [](const auto& x) {
         return permute(x[0], {2, 0, 1});
       }},
      {"slice", {{5, 4}}, [](const auto& x) { return slice(slice(x[0], 0, 1, -1), 1, 2, 4); }},
      {"concat",
       {{2, 3}, {2, 1}},
       [](const auto& x) {
         return concat({x[0], x[1], x[0]}, 1);
       }},
      {"contiguous", {{2, 3}}, [](const auto& x) { return contiguous(transpose(x[0], 0, 1)); }},
      {"expand",
       {{3, 1}},
       [](const auto& x) {
         return expand(x[0], {2, 3, 4});
       }},
      {"matmul", {{3, 5}, {5, 2}}, [](const auto& x) { return matmul(x[0], x[1]); }},
      {"matmul batched", {{2, 1, 3, 5}, {4, 5, 2}}, [](const auto& x) { return matmul(x[0], x[1]); }},
      {"linear", {{2, 3, 5}, {4, 5}, {4}}, [](const auto& x) { return linear(x[0], x[1], x[2]); }},
      {"linear no bias", {{3, 5}, {4, 5}}, [](const auto& x) { return linear(x[0], x[1]); }},
      {"linear relu", {{3, 5}, {4, 5}, {4}}, [](const auto& x) { return linear(x[0], x[1], x[2], Act::relu); }},
      {"linear gelu", {{3, 5}, {4, 5}, {4}}, [](const auto& x) { return linear(x[0], x[1], x[2], Act::gelu); }},
      {"linear tanh", {{3, 5}, {4, 5}, {4}}, [](const auto& x) { return linear(x[0], x[1], x[2], Act::tanh); }},
      {"linear sigmoid", {{3, 5}, {4, 5}, {4}}, [](const auto& x) { return linear(x[0], x[1], x[2], Act::sigmoid); }},
      {"softmax", {{3, 7}}, [](const auto& x) { return softmax(x[0]); }},
      {"log_softmax", {{3, 7}}, [](const auto& x) { return log_softmax(x[0]); }},
      {"masked_softmax", {{2, 2, 4}}, [](const auto& x) { return masked_softmax(x[0], kLens); }},
      {"masked_softmax rows", {{2, 2, 4}}, [](const auto& x) { return masked_softmax(x[0], kRowLens); }},
      {"layer_norm", {{4, 9}, {9}, {9}}, [](const auto& x) { return layer_norm(x[0], x[1], x[2]); }},
      {"add_layer_norm both",
       {{4, 9}, {4, 9}, {9}, {9}},
       [](const auto& x) {
         const auto out = add_layer_norm(x[0], x[1], x[2], x[3]);
         return concat({out.sum, mul(out.norm, out.norm)}, 0);
       }},
      {"add_layer_norm norm",
       {{4, 9}, {4, 9}, {9}, {9}},
       [](const auto& x) { return add_layer_norm(x[0], x[1], x[2], x[3]).norm; }},
      {"add_layer_norm sum",
       {{4, 9}, {4, 9}, {9}, {9}},
       [](const auto& x) { return add_layer_norm(x[0], x[1], x[2], x[3]).sum; }},
      {"dropout_add", {{3, 50}, {3, 50}}, [](const auto& x) { return dropout_add(x[0], x[1], 0.3, 9); }},
      {"cross_entropy", {{6, 5}}, [](const auto& x) { return cross_entropy(x[0], kTargets); }},
      {"cross_entropy smooth",
       {{6, 5}},
       [](const auto& x) { return cross_entropy(x[0], kTargets, {.label_smoothing = 0.1}); }},
      {"embedding", {{3, 4}}, [](const auto& x) { return embedding(x[0], kIds); }},
      {"gather_rows", {{2, 3}}, [](const auto& x) { return gather_rows(x[0], kRows); }},
  };
  return all;
}

std::vector<Tensor> random_inputs(const OpCase& c, DType dtype) {
  Rng rng(11);
  std::vector<Tensor> inputs;
  for (const Shape& s : c.inputs) inputs.push_back(Tensor::randn(s, rng, 1.0, dtype));
  return inputs;
}

TEST(Ops, GradientsAreRight) {
  for (const OpCase& c : cases()) {
    const GradCheckResult r = grad_check(c.fn, random_inputs(c, DType::f64));
    EXPECT_TRUE(r.ok) << c.name << ": " << r.message;
  }
}

// Values and gradients in f32 (the fast kernels) against f64 (the reference), for 1 and 3 threads with equal bits.
TEST(Ops, FastAgreesWithReferenceForAnyThreads) {
  for (const OpCase& c : cases()) {
    const auto run = [&](DType dtype) {
      std::vector<Tensor> in = random_inputs(c, dtype);
      for (Tensor& t : in) t.set_requires_grad(true);
      const Tensor out = c.fn(in);
      Rng rng(3);
      out.backward(Tensor::randn(out.shape(), rng, 1.0, dtype));
      std::vector<std::vector<double>> all{out.to_doubles()};
      for (const Tensor& t : in) {
        if (t.grad().defined()) all.push_back(t.grad().to_doubles());
      }
      return all;
    };
    set_num_threads(1);
    const auto exact = run(DType::f64), fast = run(DType::f32);
    set_num_threads(3);
    EXPECT_EQ(run(DType::f32), fast) << c.name;
    for (size_t i = 0; i < exact.size(); ++i) {
      ASSERT_EQ(exact[i].size(), fast[i].size());
      for (size_t j = 0; j < exact[i].size(); ++j) EXPECT_NEAR(exact[i][j], fast[i][j], 2e-5) << c.name << " " << i;
    }
  }
}

TEST(Ops, LargeProductsAgreeWithReference) {
  Rng rng(2);
  const Tensor x = Tensor::randn({130, 257}, rng), w = Tensor::randn({65, 257}, rng), b = Tensor::randn({65}, rng);
  const Tensor fast = linear(x, w, b, Act::gelu);
  const Tensor exact = linear(x.to(DType::f64), w.to(DType::f64), b.to(DType::f64), Act::gelu);
  const auto f = fast.to_doubles(), e = exact.to_doubles();
  for (size_t i = 0; i < f.size(); ++i) ASSERT_NEAR(f[i], e[i], 1e-4);
}

TEST(Ops, MaskedSoftmaxWeightsAreExactlyZeroBehindTheLength) {
  Rng rng(4);
  const int64_t lens[] = {2, 3};
  const Tensor p = masked_softmax(Tensor::randn({2, 2, 4}, rng), lens);
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t i = 0; i < 2; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < 4; ++j) {
        sum += p.at({b, i, j});
        if (j >= lens[b]) {
          EXPECT_EQ(p.at({b, i, j}), 0.0);
        }
      }
      EXPECT_NEAR(sum, 1, 1e-6);
    }
  }
}

TEST(Ops, CrossEntropyValueAndIgnoredRows) {
  const Tensor logits = Tensor::from({0, 0, 0, 0, 5, 1, 2, 3}, {2, 4});
  const int64_t targets[] = {1, -1};
  EXPECT_NEAR(cross_entropy(logits, targets).item(), std::log(4.0), 1e-6);
  const int64_t none[] = {-1, -1};
  Tensor x = logits.clone().set_requires_grad(true);
  const Tensor loss = cross_entropy(x, none);
  EXPECT_EQ(loss.item(), 0);
  loss.backward();
  for (float g : x.grad().to_vector()) EXPECT_EQ(g, 0);
}

TEST(Ops, DropoutKeepsTheMeanAndDependsOnTheSeedAlone) {
  const Tensor x = Tensor::full({100000}, 1.0);
  const Tensor y = dropout(x, 0.25, 5);
  EXPECT_NEAR(mean(y).item(), 1.0, 0.01);
  EXPECT_EQ(y.to_vector(), dropout(x, 0.25, 5).to_vector());
  EXPECT_NE(y.to_vector(), dropout(x, 0.25, 6).to_vector());
  EXPECT_TRUE(dropout(x, 0, 1).same_as(x));
  EXPECT_THROW(dropout(x, 1.0, 1), ConfigError);
}

TEST(Ops, ErrorsNameTheOpAndTheShapes) {
  const auto message = [](const std::function<void()>& fn) -> std::string {
    try {
      fn();
    } catch (const ShapeError& e) {
      return e.what();
    }
    return "no error";
  };
  const Tensor a = Tensor::zeros({2, 3}), b = Tensor::zeros({4, 5});
  EXPECT_EQ(message([&] { matmul(a, b); }), "[matmul] a=[2,3], b=[4,5]; expected a.dim(-1) == b.dim(-2)");
  EXPECT_EQ(message([&] { linear(a, b); }), "[linear] x=[2,3], weight=[4,5]; expected x.dim(-1) == weight.dim(1)");
  EXPECT_EQ(message([&] { add(a, b); }), "[add] shapes do not broadcast: [2,3] and [4,5]");
  EXPECT_EQ(message([&] { slice(a, 1, 2, 9); }), "[slice] [2, 9) outside axis 1 of [2,3]");
  EXPECT_EQ(message([&] { add(a, Tensor::zeros({2, 3}, DType::f64)); }), "[add] dtypes differ: f32 and f64");
  const int64_t far[] = {7};
  EXPECT_EQ(message([&] { embedding(a, far); }), "[embedding] index 7 outside a table of shape [2,3]");
  EXPECT_EQ(message([&] { cross_entropy(Tensor::zeros({1, 3}), far); }), "[cross_entropy] target 7 outside [0, 3)");
  const Tensor none;
  const std::pair<const char*, std::function<void()>> undefined[] = {
      {"add", [&] { add(none, a); }},
      {"mean", [&] { mean(none); }},
      {"mean", [&] { mean(none, 0); }},
      {"sum_to", [&] { sum_to(none, {1}); }},
      {"concat",
       [&] {
         concat({none, a}, 0);
       }},
      {"concat",
       [&] {
         concat({a, none}, 0);
       }},
      {"extend_cache", [&] { extend_cache({}, none); }},
      {"attention", [&] { attention_scores(none, a, {}, {}); }},
      {"attention", [&] { attention_statistics(a, none); }},
  };
  for (const auto& [op, call] : undefined) EXPECT_EQ(message(call), "[" + std::string(op) + "] undefined tensor given");
}

}  // namespace
}  // namespace qkv
