// Vision Transformer: patches are a strided convolution; class token or mean; learnt or fixed positions.
#include "qkv/models/vit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "qkv/nn/positions.h"

namespace qkv {
namespace {

using testing::message_of;

VitConfig small() {
  VitConfig c;
  c.height = 6;
  c.image_width = 9;
  c.channels = 2;
  c.patch = 3;
  c.width = 8;
  c.heads = 2;
  c.layers = 2;
  c.inner = 12;
  c.classes = 5;
  return c;
}

Tensor parameter_named(Vit& model, const std::string& name) {
  for (const NamedParameter& p : parameters(model)) {
    if (p.name == name) return p.value;
  }
  ADD_FAILURE() << "no parameter " << name;
  return {};
}

// y[b, o, i, j] = bias_o + Σ_{c,u,v} kernel[o, c, u, v] x[b, c, p·i + u, p·j + v]
double convolved(const Tensor& x, const Tensor& kernel, const Tensor& bias, std::initializer_list<int64_t> at) {
  const int64_t b = at.begin()[0], o = at.begin()[1], i = at.begin()[2], j = at.begin()[3];
  double sum = bias.at({o});
  for (int64_t c = 0; c < kernel.dim(1); ++c) {
    for (int64_t u = 0; u < kernel.dim(2); ++u) {
      for (int64_t v = 0; v < kernel.dim(3); ++v)
        sum += kernel.at({o, c, u, v}) * x.at({b, c, kernel.dim(2) * i + u, kernel.dim(3) * j + v});
    }
  }
  return sum;
}

TEST(Vit, ProjectedPatchesAreAStridedConvolution) {
  const VitConfig c = small();
  Rng rng(3);
  Vit model(c, rng);
  const Tensor images = Tensor::randn({2, c.channels, c.height, c.image_width}, rng);
  const Tensor weight = parameter_named(model, "patch.weight"), bias = parameter_named(model, "patch.bias");
  const Tensor rows = linear(model.patches(images), weight, bias);  // [B·patches, width]
  const Tensor kernel = reshape(weight, {c.width, c.channels, c.patch, c.patch});
  ASSERT_EQ(rows.shape().str(), "[12,8]");
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t i = 0; i < model.rows(); ++i) {
      for (int64_t j = 0; j < model.columns(); ++j) {
        const int64_t row = (b * model.rows() + i) * model.columns() + j;
        for (int64_t o = 0; o < c.width; ++o)
          EXPECT_NEAR(rows.at({row, o}), convolved(images, kernel, bias, {b, o, i, j}), 1e-5);
      }
    }
  }
}

TEST(Vit, MeanPoolingHasNoClassTokenAndIgnoresOrderWithoutPositions) {
  VitConfig c = small();
  c.mean_pooling = true;
  Rng rng(4);
  Vit model(c, rng);
  EXPECT_EQ(model.tokens(), 6);
  EXPECT_EQ(model.first_patch(), 0);
  for (const NamedParameter& p : parameters(model)) EXPECT_NE(p.name, "class_token");
  parameter_named(model, "positions").fill(0);
  // Two patches swapped: the mean of all patches stays what it was.
  const Tensor images = Tensor::randn({1, c.channels, c.height, c.image_width}, rng);
  const Tensor swapped = concat({slice(images, 3, 6, 9), slice(images, 3, 3, 6), slice(images, 3, 0, 3)}, 3);
  Context ctx;
  const auto a = model.forward(images, ctx).to_vector(), b = model.forward(swapped, ctx).to_vector();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5);
  parameter_named(model, "positions").copy_from(Tensor::randn({6, 8}, rng));
  const auto d = model.forward(images, ctx).to_vector(), e = model.forward(swapped, ctx).to_vector();
  double difference = 0;
  for (size_t i = 0; i < d.size(); ++i) difference += std::abs(d[i] - e[i]);
  EXPECT_GT(difference, 1e-3);
}

TEST(Vit, SinusoidalPositionsAreFixedAndKnowRowAndColumn) {
  VitConfig c = small();
  c.positions = Positions::sinusoidal;
  Rng rng(5);
  Vit model(c, rng);
  for (const NamedParameter& p : parameters(model)) EXPECT_NE(p.name, "positions");
  const Tensor grid = grid_positions(Positions::sinusoidal, 2, 3, 8), line = sinusoidal_positions(3, 4);
  ASSERT_EQ(grid.shape().str(), "[6,8]");
  for (int64_t i = 0; i < 6; ++i) {
    for (int64_t k = 0; k < 4; ++k) {
      EXPECT_EQ(grid.at({i, k}), line.at({i / 3, k}));
      EXPECT_EQ(grid.at({i, 4 + k}), line.at({i % 3, k}));
      EXPECT_EQ(model.positions().at({1 + i, k}), grid.at({i, k}));
      EXPECT_EQ(model.positions().at({0, k}), 0);
    }
  }
  Context ctx;
  EXPECT_EQ(model.forward(Tensor::randn({3, 2, 6, 9}, rng), ctx).shape().str(), "[3,5]");
  EXPECT_NE(message_of<ConfigError>([] { grid_positions(Positions::sinusoidal, 2, 2, 7); }).find("even width"),
            std::string::npos);
}

TEST(Vit, EveryMechanismForSelfAttentionRuns) {
  for (const AttentionSpec& spec : attention_table()) {
    if (!spec.in_self) continue;
    VitConfig c = small();
    c.attention = spec.name;
    Rng rng(6);
    Vit model(c, rng);
    Context ctx;
    const Tensor logits = model.forward(Tensor::randn({2, 2, 6, 9}, rng), ctx);
    EXPECT_EQ(logits.shape().str(), "[2,5]") << spec.name;
    for (const float x : logits.to_vector()) EXPECT_TRUE(std::isfinite(x)) << spec.name;
  }
}

// The last layer of an ordinary pass works on the class token alone; a traced pass works on every token.
TEST(Vit, LookingDoesNotChangeTheResult) {
  for (const char* attention : {"multi-head", "scaled-dot", "additive", "synthesizer"}) {
    VitConfig c = small();
    c.attention = attention;
    Rng rng(7);
    Vit model(c, rng);
    const Tensor images = Tensor::randn({4, 2, 6, 9}, rng);
    Context plain, traced;
    TraceList traces;
    traced.trace = &traces;
    const Tensor a = model.forward(images, plain), b = model.forward(images, traced);
    const std::vector<float> x = a.to_vector(), y = b.to_vector();
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 1e-5) << attention;
    ASSERT_EQ(traces.traces().size(), 2u) << attention;
    EXPECT_EQ(traces.traces()[1].Lq, 7) << attention;

    // The gradients agree as well.
    const int64_t targets[] = {0, 1, 2, 3};
    const auto gradients = [&](const Tensor& logits) {
      std::vector<float> all;
      for (NamedParameter& p : parameters(model)) p.value.zero_grad();
      cross_entropy(logits, targets).backward();
      for (const NamedParameter& p : parameters(model)) {
        const std::vector<float> g = p.value.grad().to_vector();
        all.insert(all.end(), g.begin(), g.end());
      }
      return all;
    };
    const std::vector<float> g = gradients(a), h = gradients(b);
    ASSERT_EQ(g.size(), h.size());
    for (size_t i = 0; i < g.size(); ++i) EXPECT_NEAR(g[i], h[i], 1e-5) << attention << " " << i;
  }
}

// With half of the patches shown, training computes what it would if the others did not exist.
TEST(Vit, TrainingSeesADrawnPartOfThePatches) {
  for (const bool pooled : {false, true}) {
    VitConfig c = small(), all = small();
    c.shown = 0.5;
    c.mean_pooling = all.mean_pooling = pooled;
    Rng rng(8), same(8);
    Vit model(c, rng), whole(all, same);
    EXPECT_EQ(model.training_tokens(), model.first_patch() + 3);
    EXPECT_EQ(model.tokens(), model.first_patch() + 6);
    const Tensor images = Tensor::randn({2, 2, 6, 9}, rng);
    const auto logits = [&](const Vit& m, const Tensor& x, uint64_t step) {
      Context ctx(1, step);
      return m.forward(x, ctx).to_vector();
    };
    EXPECT_EQ(logits(model, images, 1), logits(model, images, 1));
    EXPECT_NE(logits(model, images, 1), logits(model, images, 2));
    EXPECT_NE(logits(model, images, 1), logits(whole, images, 1));
    Context use, use_whole;  // outside training nothing is hidden
    EXPECT_EQ(model.forward(images, use).to_vector(), whole.forward(images, use_whole).to_vector());

    // Image 0 depends on just three of its six patches.
    int seen = 0;
    for (int64_t patch = 0; patch < 6; ++patch) {
      Tensor other = Tensor::zeros(images.shape());
      other.copy_from(images);
      other.f32()[(patch / 3 * 3) * 9 + patch % 3 * 3] += 1;
      const std::vector<float> before = logits(model, images, 1), after = logits(model, other, 1);
      seen += !std::equal(before.begin(), before.begin() + 5, after.begin()) ? 1 : 0;
      EXPECT_TRUE(std::equal(before.begin() + 5, before.end(), after.begin() + 5)) << patch;
    }
    EXPECT_EQ(seen, 3) << pooled;
  }
}

TEST(Vit, RefusesAPartOfThePatchesThatMakesNoSense) {
  Rng rng(9);
  VitConfig c = small();
  for (const double shown : {0.0, -0.5, 1.5, std::nan("")}) {
    c.shown = shown;
    EXPECT_NE(message_of<ConfigError>([&] { Vit(c, rng); }).find("fraction of the patches"), std::string::npos)
        << shown;
  }
  c.shown = 0.5;
  c.attention = "synthesizer";
  EXPECT_NE(message_of<ConfigError>([&] { Vit(c, rng); }).find("synthesizer"), std::string::npos);
}

}  // namespace
}  // namespace qkv
