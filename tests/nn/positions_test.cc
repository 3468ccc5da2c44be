// Positions and the padded shapes of textbooks.
#include "qkv/nn/positions.h"

#include <gtest/gtest.h>

#include <cmath>

#include "qkv/base/error.h"
#include "qkv/nn/padded.h"
#include "qkv/ops/heads.h"
#include "support/fixture.h"

namespace qkv {
namespace {

TEST(Positions, SinusoidsFollowTheFormula) {
  const Tensor p = sinusoidal_positions(60, 32);
  EXPECT_EQ(p.shape().str(), "[60,32]");
  EXPECT_NEAR(p.at({7, 6}), std::sin(7 / std::pow(10000.0, 6.0 / 32)), 1e-6);
  EXPECT_NEAR(p.at({7, 7}), std::cos(7 / std::pow(10000.0, 6.0 / 32)), 1e-6);
  EXPECT_EQ(p.at({0, 0}), 0.0);
  EXPECT_EQ(p.at({0, 1}), 1.0);
  EXPECT_EQ(sinusoidal_positions(3, 5).shape().str(), "[3,5]");  // odd widths end in a sine
}

TEST(Positions, RotaryDotProductsDependOnTheDifferenceAlone) {
  Rng rng(2);
  const Tensor q = Tensor::randn({1, 2, 6}, rng), k = Tensor::randn({1, 2, 6}, rng);
  const auto product = [&](int64_t i, int64_t j) {
    const std::vector<int64_t> at_i{i}, at_j{j};
    return sum(rotary(q, at_i) * rotary(k, at_j)).item();
  };
  EXPECT_NEAR(product(3, 1), product(12, 10), 1e-4);
  EXPECT_NEAR(product(0, 0), sum(q * k).item(), 1e-5);
  EXPECT_GT(std::abs(product(3, 1) - product(3, 2)), 1e-3);
}

TEST(Positions, RotaryPairsAreHalvesAndGradientsTurnBack) {
  const Tensor x = Tensor::from({1, 0, 0, 0}, {1, 1, 4});
  const std::vector<int64_t> one{1};
  const Tensor y = rotary(x, one);
  EXPECT_NEAR(y.at({0, 0, 0}), std::cos(1.0), 1e-6);
  EXPECT_NEAR(y.at({0, 0, 2}), std::sin(1.0), 1e-6);
  Rng rng(2);
  const std::vector<int64_t> at{0, 5, 2};
  const GradCheckResult result =
      grad_check([&](const std::vector<Tensor>& in) { return rotary(slice(in[0], 1, 1, 3), at); },  // a strided input
                 {Tensor::randn({3, 4, 6}, rng)});
  EXPECT_TRUE(result.ok) << result.message;
  EXPECT_THROW(rotary(Tensor::zeros({3, 2, 5}), at), ShapeError);
  EXPECT_THROW(rotary(Tensor::zeros({2, 2, 4}), at), ShapeError);
}

TEST(Positions, RotaryColumnsTurnQueriesAndKeysOnly) {
  Rng rng(2);
  const std::vector<int64_t> at{3, 0, 7};
  const Tensor x = Tensor::randn({3, 14}, rng);  // three heads of four, then two columns of values
  const Tensor y = rotary_columns(x, 3, 4, at);
  const Tensor heads = rotary(reshape(contiguous(slice(x, 1, 0, 12)), {3, 3, 4}), at);
  testing::expect_same_bits(contiguous(slice(y, 1, 0, 12)), reshape(heads, {3, 12}), "turned");
  testing::expect_same_bits(contiguous(slice(y, 1, 12, 14)), contiguous(slice(x, 1, 12, 14)), "copied");
  const GradCheckResult result =
      grad_check([&](const std::vector<Tensor>& in) { return rotary_columns(in[0], 3, 4, at); }, {x});
  EXPECT_TRUE(result.ok) << result.message;
  EXPECT_THROW(rotary_columns(x, 4, 4, at), ShapeError);
}

TEST(Positions, SplitColumnsAreViewsWithGradients) {
  Rng rng(2);
  const std::vector<int64_t> widths{2, 1, 3};
  const GradCheckResult result = grad_check(
      [&](const std::vector<Tensor>& in) {
        const std::vector<Tensor> parts = split_columns(in[0], widths);
        return concat({parts[2], parts[0], parts[2] * parts[2]}, 1);  // one part twice, one not at all
      },
      {Tensor::randn({3, 6}, rng)});
  EXPECT_TRUE(result.ok) << result.message;
  EXPECT_THROW(split_columns(Tensor::zeros({3, 5}), widths), ShapeError);
}

TEST(Positions, AlibiFallsOffWithDistance) {
  const std::vector<double> slopes = alibi_slopes(8);
  EXPECT_DOUBLE_EQ(slopes[0], 0.5);
  EXPECT_DOUBLE_EQ(slopes[7], 1.0 / 256);
  const Tensor bias = alibi_bias(8, 2, 4, 2);
  EXPECT_EQ(bias.shape().str(), "[8,2,4]");
  EXPECT_EQ(bias.at({0, 0, 2}), 0.0);
  EXPECT_EQ(bias.at({0, 1, 0}), -1.5);
}

TEST(Positions, LearnedOnesEnd) {
  Rng rng(1);
  LearnedPositions table(4, 3, rng);
  const std::vector<int64_t> fine{0, 3, 0}, beyond{4};
  EXPECT_EQ(table.forward(fine).shape().str(), "[3,3]");
  EXPECT_THROW(table.forward(beyond), ShapeError);
}

TEST(Padded, DotProductAttentionShapes) {
  Rng rng(1);
  const Tensor q = Tensor::randn({2, 1, 2}, rng), k = Tensor::full({2, 10, 2}, 1.0);
  const Tensor v = reshape(Tensor::arange(40), {1, 10, 4});
  const std::vector<int64_t> lens{2, 6};
  Context ctx, training(1, 2);
  const padded::DotProductAttention attention, dropping(0.5);
  const Tensor out = attention.forward(q, k, concat({v, v}, 0), lens, ctx);
  const Tensor weights = attention.weights(q, k, lens);
  EXPECT_EQ(weights.shape().str(), "[2,1,10]");
  EXPECT_NEAR(weights.at({0, 0, 1}), 0.5, 1e-6);
  EXPECT_EQ(weights.at({0, 0, 2}), 0.0);
  testing::expect_same_bits(dropping.forward(q, k, concat({v, v}, 0), lens, ctx), out, "no dropout in inference");
  EXPECT_GT(std::abs(dropping.forward(q, k, concat({v, v}, 0), lens, training).at({1, 0, 3}) - 13.0), 1e-3);
  EXPECT_THROW(padded::DotProductAttention(1.0), ConfigError);
  EXPECT_EQ(out.shape().str(), "[2,1,4]");
  EXPECT_NEAR(out.at({0, 0, 0}), 2.0, 1e-5);  // equal keys: the mean of the first 2 and of the first 6 values
  EXPECT_NEAR(out.at({1, 0, 3}), 13.0, 1e-5);
}

TEST(Padded, AdditiveAttentionShapes) {
  Rng rng(1);
  padded::AdditiveAttention attention(20, 2, 8, rng);
  const Tensor v = reshape(Tensor::arange(40), {1, 10, 4});
  const std::vector<int64_t> lens{2, 6};
  const Tensor q = Tensor::randn({2, 1, 20}, rng), k = Tensor::full({2, 10, 2}, 1.0);
  Context ctx;
  const Tensor out = attention.forward(q, k, concat({v, v}, 0), lens, ctx);
  EXPECT_EQ(attention.weights(q, k, lens).shape().str(), "[2,1,10]");
  EXPECT_NEAR(attention.weights(q, k, lens).at({1, 0, 5}), 1.0 / 6, 1e-6);
  EXPECT_EQ(out.shape().str(), "[2,1,4]");
  EXPECT_NEAR(out.at({1, 0, 0}), 10.0, 1e-5);
  EXPECT_EQ(parameter_count(attention), 20 * 8 + 2 * 8 + 8);
}

TEST(Padded, MultiHeadAttentionShapes) {
  Rng rng(1);
  padded::MultiHeadAttention attention(100, 5, rng, 0.5);
  const Tensor q = Tensor::full({2, 4, 100}, 1.0), k = Tensor::full({2, 6, 100}, 1.0);
  const std::vector<int64_t> lens{3, 2};
  Context ctx;
  EXPECT_EQ(attention.forward(q, k, k, lens, ctx).shape().str(), "[2,4,100]");
  const Tensor weights = attention.weights(q, k, lens);
  EXPECT_EQ(weights.shape().str(), "[2,5,4,6]");
  EXPECT_NEAR(weights.at({0, 4, 3, 2}), 1.0 / 3, 1e-6);
  EXPECT_EQ(weights.at({1, 0, 0, 2}), 0.0);
  const Tensor x = Tensor::randn({2, 4, 100}, rng);
  EXPECT_EQ(padded::transpose_qkv(x, 5).shape().str(), "[10,4,20]");
  testing::expect_same_bits(padded::transpose_output(padded::transpose_qkv(x, 5), 5), x, "inverse");
  EXPECT_THROW(padded::MultiHeadAttention(100, 3, rng), ConfigError);
  EXPECT_THROW(padded::transpose_qkv(x, 3), ShapeError);
}

TEST(Padded, Gradients) {
  Rng rng(1);
  const std::vector<int64_t> lens{2, 3};
  padded::AdditiveAttention additive(3, 2, 4, rng);
  padded::MultiHeadAttention heads(4, 2, rng, 0.3);
  const GradCheckResult a = testing::check_module(
      additive, {Tensor::randn({2, 2, 3}, rng), Tensor::randn({2, 3, 2}, rng), Tensor::randn({2, 3, 5}, rng)},
      [&](const std::vector<Tensor>& in) {
        Context ctx;
        return additive.forward(in[0], in[1], in[2], lens, ctx);
      });
  EXPECT_TRUE(a.ok) << a.message;
  const GradCheckResult b = testing::check_module(heads, {Tensor::randn({2, 2, 4}, rng), Tensor::randn({2, 3, 4}, rng)},
                                                  [&](const std::vector<Tensor>& in) {
                                                    Context ctx(1, 2);
                                                    return heads.forward(in[0], in[1], in[1], lens, ctx);
                                                  });
  EXPECT_TRUE(b.ok) << b.message;
}

padded::Seq2SeqAttentionDecoder::State encoded(int64_t B, int64_t length, int64_t hidden, int64_t layers, Rng& rng) {
  return {Tensor::randn({B, length, hidden}, rng), Tensor::randn({layers, B, hidden}, rng), {}};
}

TEST(Padded, AttentionDecoderShapes) {
  Rng rng(1);
  Context ctx;
  const padded::Seq2SeqAttentionDecoder decoder({10, 8, 16, 2}, rng);
  const std::vector<int64_t> tokens(4 * 7, 0);
  const auto state = encoded(4, 7, 16, 2, rng);
  const auto out = decoder.forward(tokens, state, ctx);
  EXPECT_EQ(out.logits.shape().str(), "[4,7,10]");
  EXPECT_EQ(out.state.encoder_outputs.shape().str(), "[4,7,16]");
  EXPECT_EQ(out.state.hidden.shape().str(), "[2,4,16]");
  EXPECT_EQ(out.weights.shape().str(), "[4,7,7]");
  EXPECT_THROW(decoder.forward(std::vector<int64_t>(27), state, ctx), ShapeError);
  EXPECT_THROW(decoder.forward(tokens, encoded(4, 7, 15, 2, rng), ctx), ShapeError);
}

TEST(Padded, AttentionDecoderGoesOnFromItsState) {
  Rng rng(1);
  Context ctx;
  const padded::Seq2SeqAttentionDecoder decoder({10, 8, 16, 2}, rng);
  auto state = encoded(2, 5, 16, 2, rng);
  state.lens = {3, 5};
  const auto whole = decoder.forward(std::vector<int64_t>{1, 2, 3, 4, 5, 6}, state, ctx);
  const auto first = decoder.forward(std::vector<int64_t>{1, 2, 4, 5}, state, ctx);
  const auto then = decoder.forward(std::vector<int64_t>{3, 6}, first.state, ctx);
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t v = 0; v < 10; ++v) {
      EXPECT_NEAR(then.logits.at({b, 0, v}), whole.logits.at({b, 2, v}), 1e-5);
      EXPECT_NEAR(then.state.hidden.at({1, b, v}), whole.state.hidden.at({1, b, v}), 1e-5);
    }
    double total = 0;
    for (int64_t j = 0; j < 5; ++j) total += whole.weights.at({b, 1, j});
    EXPECT_NEAR(total, 1, 1e-5);
  }
  EXPECT_EQ(whole.weights.at({0, 2, 3}), 0.0);  // past the valid length
}

TEST(Padded, AttentionDecoderReadsItsLogitsFromTheStateAlone) {
  Rng rng(1);
  Context ctx;
  padded::Seq2SeqAttentionDecoder decoder({10, 8, 16, 2}, rng);
  const auto out = decoder.forward(std::vector<int64_t>{1, 2}, encoded(2, 5, 16, 2, rng), ctx);
  Tensor weight, bias;
  for (const NamedParameter& p : parameters(decoder)) {
    if (p.name == "output.weight") weight = p.value;
    if (p.name == "output.bias") bias = p.value;
  }
  const Tensor top = reshape(slice(out.state.hidden, 0, 1, 2), {2, 16});
  const Tensor again = linear(top, weight, bias);  // [2, 10]
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t v = 0; v < 10; ++v) EXPECT_NEAR(again.at({b, v}), out.logits.at({b, 0, v}), 1e-5);
  }
}

TEST(Padded, PositionalEncodingShapes) {
  const padded::PositionalEncoding encoding(32, 60);
  Context ctx;
  const Tensor out = encoding.forward(Tensor::zeros({1, 60, 32}), ctx);
  EXPECT_EQ(out.shape().str(), "[1,60,32]");
  EXPECT_EQ(out.at({0, 3, 6}), encoding.table().at({3, 6}));
  EXPECT_THROW(encoding.forward(Tensor::zeros({1, 61, 32}), ctx), ShapeError);
}

TEST(Padded, MaskedSoftmaxShapes) {
  Rng rng(1);
  const Tensor x = Tensor::randn({2, 2, 4}, rng);
  for (const std::vector<int64_t>& lens : {std::vector<int64_t>{2, 3}, std::vector<int64_t>{1, 3, 2, 4}}) {
    const Tensor w = masked_softmax(x, lens);
    for (int64_t b = 0; b < 2; ++b) {
      for (int64_t i = 0; i < 2; ++i) {
        const int64_t length = lens.size() == 2 ? lens[static_cast<size_t>(b)] : lens[static_cast<size_t>(2 * b + i)];
        double total = 0;
        for (int64_t j = 0; j < 4; ++j) {
          total += w.at({b, i, j});
          if (j >= length) {
            EXPECT_EQ(w.at({b, i, j}), 0.0);
          }
        }
        EXPECT_NEAR(total, 1.0, 1e-6);
      }
    }
  }
}

}  // namespace
}  // namespace qkv
