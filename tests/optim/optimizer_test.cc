// Optimizers: equal to PyTorch's step by step, restored state continues exactly, threads change nothing.
#include "qkv/optim/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "qkv/io/safetensors.h"
#include "support/paths.h"

namespace qkv {
namespace {

using Make = std::function<std::unique_ptr<Optimizer>(std::vector<NamedParameter>)>;

constexpr int kSteps = 6;

const SafetensorsFile& fixture() {
  static const SafetensorsFile file = SafetensorsFile::load(qkv::testing::fixtures() + "/optim/steps.safetensors");
  return file;
}

Tensor load(const std::string& name, const Shape& shape) {
  const std::vector<float> values = fixture().f32(name, shape);
  return Tensor::from(std::span<const float>(values), shape);
}

struct Stepper {
  Tensor matrix = load("start.matrix", {5, 7}), vector = load("start.vector", {3});
  std::unique_ptr<Optimizer> optimizer;
  explicit Stepper(const Make& make) : optimizer(make({{"matrix", matrix}, {"vector", vector}})) {}

  void set_gradients(int t) {
    const std::string prefix = "grad." + std::to_string(t);
    matrix.set_grad(load(prefix + ".matrix", {5, 7}));
    vector.set_grad(t == 2 ? Tensor() : load(prefix + ".vector", {3}));
  }
};

double worst(const Tensor& a, const Tensor& b) {
  double w = 0;
  const std::vector<double> x = a.to_doubles(), y = b.to_doubles();
  for (size_t i = 0; i < x.size(); ++i) w = std::max(w, std::abs(x[i] - y[i]) / std::max(1.0, std::abs(y[i])));
  return w;
}

void expect_like_torch(const std::string& name, double lr, const Make& make) {
  Stepper run(make);
  for (int t = 0; t < kSteps; ++t) {
    run.set_gradients(t);
    double scale = 1;
    if (name == "clipped") {
      const double norm = gradient_norm(run.optimizer->parameters());
      EXPECT_NEAR(norm, load("clipped.norm." + std::to_string(t), {1}).item(), 1e-5);
      scale = clip_factor(norm, 1.5);
    }
    run.optimizer->step(lr, scale);
    const std::string prefix = name + "." + std::to_string(t);
    EXPECT_LT(worst(run.matrix, load(prefix + ".matrix", {5, 7})), 1e-6) << prefix;
    EXPECT_LT(worst(run.vector, load(prefix + ".vector", {3})), 1e-6) << prefix;
  }
}

template <class O, class Options>
Make make(const Options& options) {
  return [options](std::vector<NamedParameter> p) { return std::make_unique<O>(std::move(p), options); };
}

TEST(Optimizer, EqualsTorch) {
  expect_like_torch("adamw", 1e-2, make<AdamW>(AdamWOptions{.weight_decay = 0.05}));
  expect_like_torch(
      "adam", 1e-2,
      make<AdamW>(AdamWOptions{.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0.05, .l2 = true}));
  expect_like_torch("sgd", 0.1, make<Sgd>(SgdOptions{.weight_decay = 0.05}));
  expect_like_torch("momentum", 0.1, make<Sgd>(SgdOptions{.momentum = 0.9, .dampening = 0.2}));
  expect_like_torch("nesterov", 0.1, make<Sgd>(SgdOptions{.momentum = 0.9, .weight_decay = 0.01, .nesterov = true}));
  expect_like_torch("clipped", 1e-2, make<AdamW>(AdamWOptions{.weight_decay = 0.05}));
}

TEST(Optimizer, RestoredStateGoesOnToTheSameBits) {
  for (const Make& how :
       {make<AdamW>(AdamWOptions{}), make<Sgd>(SgdOptions{.momentum = 0.9}), make<Muon>(AdamWOptions{})}) {
    Stepper whole(how), first(how);
    for (int t = 0; t < kSteps; ++t) {
      whole.set_gradients(t);
      whole.optimizer->step(0.01);
    }
    for (int t = 0; t < 3; ++t) {
      first.set_gradients(t);
      first.optimizer->step(0.01);
    }
    Stepper second(how);
    second.matrix.copy_from(first.matrix);
    second.vector.copy_from(first.vector);
    const auto from = first.optimizer->state(), to = second.optimizer->state();
    ASSERT_EQ(from.size(), to.size());
    for (size_t i = 0; i < from.size(); ++i) {
      EXPECT_EQ(from[i].name, to[i].name);
      Tensor(to[i].value).copy_from(from[i].value);
    }
    for (int t = 3; t < kSteps; ++t) {
      second.set_gradients(t);
      second.optimizer->step(0.01);
    }
    EXPECT_EQ(whole.matrix.to_vector(), second.matrix.to_vector());
    EXPECT_EQ(whole.vector.to_vector(), second.vector.to_vector());
  }
}

TEST(Optimizer, ThreadsChangeNoBit) {
  const int before = num_threads();
  std::vector<std::vector<float>> results;
  std::vector<double> norms;
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    Rng rng(4);
    Tensor p = Tensor::randn({300, 301}, rng);
    p.set_grad(Tensor::randn({300, 301}, rng));
    AdamW adam({{"p", p}});
    norms.push_back(gradient_norm(adam.parameters()));
    adam.step(0.01, clip_factor(norms.back(), 1));
    results.push_back(p.to_vector());
  }
  set_num_threads(before);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
  EXPECT_EQ(norms[0], norms[1]);
  EXPECT_EQ(norms[0], norms[2]);
}

/// Newton-Schulz in plain loops of doubles: X = a X + (b XXᵀ + c (XXᵀ)²) X, five times, from X/|X|.
std::vector<double> plain_orthogonal(const Tensor& t) {
  const auto R = static_cast<size_t>(t.dim(0)), C = static_cast<size_t>(t.dim(1));
  std::vector<double> x = t.to_doubles();
  double norm = 0;
  for (const double v : x) norm += v * v;
  for (double& v : x) v /= std::sqrt(norm) + 1e-7;
  const auto times = [](const std::vector<double>& a, const std::vector<double>& b, size_t rows, size_t inner) {
    const size_t columns = b.size() / inner;
    std::vector<double> c(rows * columns, 0.0);
    for (size_t i = 0; i < rows; ++i) {
      for (size_t k = 0; k < inner; ++k) {
        for (size_t j = 0; j < columns; ++j) c[i * columns + j] += a[i * inner + k] * b[k * columns + j];
      }
    }
    return c;
  };
  for (int step = 0; step < 5; ++step) {
    std::vector<double> transposed(x.size());
    for (size_t i = 0; i < R; ++i) {
      for (size_t j = 0; j < C; ++j) transposed[j * R + i] = x[i * C + j];
    }
    std::vector<double> square = times(x, transposed, R, C);
    const std::vector<double> fourth = times(square, square, R, R);
    for (size_t i = 0; i < square.size(); ++i) square[i] = -4.7750 * square[i] + 2.0315 * fourth[i];
    const std::vector<double> change = times(square, x, R, R);
    for (size_t i = 0; i < x.size(); ++i) x[i] = 3.4445 * x[i] + change[i];
  }
  return x;
}

TEST(Muon, OrthogonalEqualsPlainLoopsWideTallAndSquare) {
  for (const Shape& shape : {Shape{4, 9}, Shape{9, 4}, Shape{6, 6}, Shape{1, 5}}) {
    Rng rng(3);
    const Tensor x = Tensor::randn(shape, rng);
    const std::vector<double> expected = plain_orthogonal(x), got = orthogonal(x).to_doubles();
    double length = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], expected[i], 1e-4) << shape.str();
      length += got[i] * got[i];
    }
    // Every singular value lies near 1, so the sum of their squares is near their number.
    const auto rank = static_cast<double>(std::min(shape[0], shape[1]));
    EXPECT_GT(length, 0.45 * rank) << shape.str();
    EXPECT_LT(length, 1.5 * rank) << shape.str();
  }
  EXPECT_EQ(testing::message_of<ShapeError>([] { orthogonal(Tensor::zeros({3})); }),
            "[orthogonal] needs an f32 matrix: x=[3]");
}

TEST(Muon, InnerMatricesMoveAlongTheOrthogonalDirectionTheRestByAdamW) {
  Rng rng(5);
  const AdamWOptions options{.weight_decay = 0.1};
  const double lr = 0.01, scale = 0.5;
  Tensor inner = Tensor::randn({8, 12}, rng), bias = Tensor::randn({8}, rng), table = Tensor::randn({5, 8}, rng);
  Tensor bias_twin = bias.clone(), table_twin = table.clone();
  std::vector<double> expected = inner.to_doubles(), momentum(expected.size(), 0.0);
  Muon muon({{"layer.weight", inner}, {"layer.bias", bias}, {"embed.tokens.weight", table}}, options);
  AdamW adam({{"layer.bias", bias_twin}, {"embed.tokens.weight", table_twin}}, options);
  for (int step = 0; step < 3; ++step) {
    const Tensor g = Tensor::randn({8, 12}, rng), g_bias = Tensor::randn({8}, rng),
                 g_table = Tensor::randn({5, 8}, rng);
    inner.set_grad(g);
    bias.set_grad(g_bias);
    bias_twin.set_grad(g_bias);
    table.set_grad(g_table);
    table_twin.set_grad(g_table);
    muon.step(lr, scale);
    adam.step(lr, scale);
    const std::vector<double> gradient = g.to_doubles();
    std::vector<float> direction(gradient.size());
    for (size_t i = 0; i < gradient.size(); ++i) {
      momentum[i] = 0.95 * momentum[i] + 0.05 * scale * gradient[i];
      direction[i] = static_cast<float>(0.95 * momentum[i] + 0.05 * scale * gradient[i]);
    }
    const std::vector<double> u = plain_orthogonal(Tensor::from(std::span<const float>(direction), {8, 12}));
    for (size_t i = 0; i < u.size(); ++i) expected[i] += -lr * 0.1 * expected[i] - lr * 0.2 * std::sqrt(12.0) * u[i];
  }
  const std::vector<double> got = inner.to_doubles();
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5);
  EXPECT_EQ(bias.to_vector(), bias_twin.to_vector());
  EXPECT_EQ(table.to_vector(), table_twin.to_vector());
}

TEST(Muon, ThreadsChangeNoBit) {
  const int before = num_threads();
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    Rng rng(4);
    Tensor p = Tensor::randn({130, 301}, rng);
    p.set_grad(Tensor::randn({130, 301}, rng));
    Muon muon({{"p", p}});
    muon.step(0.01);
    results.push_back(p.to_vector());
  }
  set_num_threads(before);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(Muon, TablesAndLastLayersAreNotInner) {
  const Tensor m = Tensor::zeros({2, 2});
  for (const char* name :
       {"stack.layers.0.self.output.weight", "encoder.layers.1.feed_forward.inner.weight", "combine"}) {
    EXPECT_TRUE(is_inner_matrix({name, m})) << name;
  }
  for (const char* name : {"embed.tokens.weight", "source.tokens.weight", "target_embedding.weight", "positions.weight",
                           "head.weight", "output.weight"}) {
    EXPECT_FALSE(is_inner_matrix({name, m})) << name;
  }
  EXPECT_FALSE(is_inner_matrix({"stack.norm.weight", Tensor::zeros({4})}));
}

TEST(Optimizer, VectorsCanBeLeftUndecayed) {
  Tensor w = Tensor::full({2, 2}, 1), b = Tensor::full({2}, 1);
  w.set_grad(Tensor::zeros({2, 2}));
  b.set_grad(Tensor::zeros({2}));
  AdamW adam({{"w", w}, {"b", b}}, {.weight_decay = 0.5, .decay_vectors = false});
  adam.step(0.1);
  EXPECT_FLOAT_EQ(w.f32()[0], 0.95f);
  EXPECT_FLOAT_EQ(b.f32()[0], 1.0f);
}

TEST(Optimizer, NonFiniteGradientsShowInTheNorm) {
  Tensor p = Tensor::full({20}, 1);
  p.set_grad(Tensor::full({20}, 1));
  EXPECT_DOUBLE_EQ(gradient_norm({{"p", p}}), std::sqrt(20.0));
  p.grad().f32()[17] = std::nanf("");
  EXPECT_TRUE(std::isnan(gradient_norm({{"p", p}})));
  EXPECT_DOUBLE_EQ(gradient_norm({{"q", Tensor::full({2}, 1)}}), 0);
  EXPECT_DOUBLE_EQ(clip_factor(10, 0), 1);
  EXPECT_DOUBLE_EQ(clip_factor(0.5, 1), 1);
}

TEST(Optimizer, StridedGradientsAreTakenInOrder) {
  Tensor p = Tensor::zeros({2, 3});
  const Tensor g = Tensor::from({1, 2, 3, 4, 5, 6}, {3, 2});
  p.set_grad(g.as_strided({2, 3}, {1, 2}, 0));  // g transposed
  Sgd sgd({{"p", p}});
  sgd.step(1);
  EXPECT_EQ(p.to_vector(), (std::vector<float>{-1, -3, -5, -2, -4, -6}));
}

TEST(Optimizer, SenselessOptionsAreRefused) {
  using testing::message_of;
  EXPECT_EQ(message_of<ConfigError>([] { AdamW({}, {.beta1 = 1}); }), "[adamw] beta1 and beta2 must lie in [0, 1)");
  EXPECT_EQ(message_of<ConfigError>([] { Sgd({}, {.nesterov = true}); }),
            "[sgd] Nesterov needs momentum and no dampening");
  EXPECT_EQ(message_of<ConfigError>([] { Sgd({}, {.momentum = -1}); }),
            "[sgd] momentum and weight decay must not be negative");
}

}  // namespace
}  // namespace qkv
