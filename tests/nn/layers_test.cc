// Linear, embedding, layer norm, dropout, feed-forward and cross entropy against PyTorch and central differences.
#include "qkv/nn/layers.h"

#include <gtest/gtest.h>

#include "qkv/base/error.h"
#include "support/fixture.h"

namespace qkv {
namespace {

using testing::Fixture;

TEST(Layers, LayerNormIsPyTorchs) {
  const Fixture f("nn/layer_norm.txt");
  LayerNorm norm(7);
  testing::load_parameters(norm, f);
  const Tensor x = f["x"].set_requires_grad(true);
  const Tensor out = norm.forward(x);
  testing::expect_close(out, f["out"], 1e-5, "out");
  out.backward(f["probe"]);
  testing::expect_close(x.grad(), f["grad_x"], 1e-5, "d_x");
  testing::expect_gradients(norm, f, 1e-5);
}

TEST(Layers, CrossEntropyIsPyTorchs) {
  const Fixture f("nn/cross_entropy.txt");
  const Tensor x = f["x"].set_requires_grad(true);
  const Tensor loss = cross_entropy(x, f.ints("targets"), {.label_smoothing = 0.1, .ignore = -1});
  testing::expect_close(loss, f["loss"], 1e-5, "loss");
  loss.backward();
  testing::expect_close(x.grad(), f["grad_x"], 1e-5, "d_x");
}

TEST(Layers, FeedForwardGradients) {
  for (Act act : {Act::relu, Act::gelu}) {
    Rng rng(4);
    FeedForward block(3, 5, act, 0.3, rng);
    const GradCheckResult result =
        testing::check_module(block, {Tensor::randn({2, 3}, rng)}, [&](const std::vector<Tensor>& in) {
          Context ctx(5, 9);
          return block.forward(in[0], ctx);
        });
    EXPECT_TRUE(result.ok) << result.message;
  }
}

TEST(Layers, EmbeddingGradientAddsUpRepeats) {
  Rng rng(4);
  Embedding table(4, 3, rng);
  const std::vector<int64_t> ids{2, 0, 2};
  const Tensor out = table.forward(ids);
  EXPECT_EQ(out.shape().str(), "[3,3]");
  out.backward(Tensor::full({3, 3}, 1.0));
  EXPECT_EQ(table.table().grad().at({2, 1}), 2.0);
  EXPECT_EQ(table.table().grad().at({3, 0}), 0.0);
}

TEST(Layers, LinearStartsWithinItsBound) {
  Rng rng(1);
  Linear layer(16, 64, rng);
  double largest = 0;
  for (double w : layer.weight().to_doubles()) largest = std::max(largest, std::abs(w));
  EXPECT_LT(largest, 0.25);
  EXPECT_GT(largest, 0.24);
  Linear plain(16, 64, rng, false);
  EXPECT_EQ(parameter_count(layer), 16 * 64 + 64);
  EXPECT_EQ(parameter_count(plain), 16 * 64);
}

TEST(Layers, DropoutActsInTrainingOnly) {
  Context use, train(1, 1);
  const Dropout drop(0.5);
  const Tensor x = Tensor::full({1000}, 1.0);
  EXPECT_TRUE(drop.forward(x, use).same_as(x));
  double kept = 0;
  for (double v : drop.forward(x, train).to_doubles()) {
    EXPECT_TRUE(v == 0.0 || v == 2.0);
    kept += v / 2;
  }
  EXPECT_NEAR(kept, 500, 60);
  EXPECT_GT(testing::distance(drop.forward(x, train), drop.forward(x, train)), 0) << "each call draws again";
}

TEST(Layers, SizesMustMakeSense) {
  Rng rng(1);
  EXPECT_THROW(Linear(0, 3, rng), ConfigError);
  EXPECT_THROW(Embedding(5, -1, rng), ConfigError);
  EXPECT_THROW(LayerNorm(0), ConfigError);
  EXPECT_THROW(Dropout(1.0), ConfigError);
}

}  // namespace
}  // namespace qkv
