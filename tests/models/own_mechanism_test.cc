// A custom mechanism, given to every model as a factory: it learns, its gradients are right, it writes text.
#include <gtest/gtest.h>

#include "examples/own_mechanism/gaussian_attention.h"
#include "support/fixture.h"

namespace qkv {
namespace {

Mechanism gaussian() {
  return [](const AttentionConfig& config, Rng& rng) { return std::make_unique<GaussianAttention>(config, rng); };
}

TEST(OwnMechanism, HasTheWeightsItPromises) {
  Rng rng(3);
  AttentionConfig config;
  config.query = 3;
  config.memory = 4;
  const auto attention = gaussian().make(config, rng);
  std::map<std::string, Tensor> p;
  for (const NamedParameter& named : parameters(*attention)) p[named.name] = named.value;
  const Tensor memory = Tensor::randn({5, 4}, rng), query = Tensor::randn({2, 3}, rng);
  AttentionCall call;
  call.queries = Ragged{2};
  call.memory = Ragged{5};
  Context ctx;
  const Tensor out = attention->forward(query, memory, call, ctx);
  const Tensor q = linear(query, p["query.weight"], p["query.bias"]),
               k = linear(memory, p["key.weight"], p["key.bias"]);
  const Tensor apart = reshape(q, {2, 1, 3}) - reshape(k, {1, 5, 3});                         // [2, 5, 3]
  const Tensor weights = softmax(sum(apart * apart, -1) / (-2 * std::sqrt(3.0)));             // [2, 5]
  const Tensor wanted = matmul(weights, linear(memory, p["value.weight"], p["value.bias"]));  // [2, 3]
  testing::expect_close(out, wanted, 1e-5, "context");
}

TEST(OwnMechanism, GradientsOfASeq2SeqAndATransformer) {
  Rng rng(1);
  const TokenBatch source({0, 1, 2, 3, 4}, Ragged{2, 3}), inputs({4, 3, 2}, Ragged{1, 2});
  for (const Placement placement : {Placement::after, Placement::before}) {
    Seq2SeqConfig config;
    config.source_vocabulary = config.target_vocabulary = 5;
    config.embedding = config.hidden = 3;
    config.attention = gaussian();
    config.placement = placement;
    Seq2Seq model(config, rng);
    const GradCheckResult result = testing::check_module(model, {}, [&](const std::vector<Tensor>&) {
      Context ctx;
      return model.forward(source, inputs, ctx);
    });
    EXPECT_TRUE(result.ok) << result.message;
  }
  TransformerConfig config;
  config.source_vocabulary = config.target_vocabulary = 5;
  config.width = config.inner = 4;
  config.heads = config.encoder_layers = config.decoder_layers = 1;
  config.self_attention = config.cross_attention = gaussian();
  config.dropout = 0;
  config.act = Act::tanh;
  config.positions = Positions::none;
  Transformer model(config, rng);
  const GradCheckResult result = testing::check_module(model, {}, [&](const std::vector<Tensor>&) {
    Context ctx;
    return model.forward(source, inputs, ctx);
  });
  EXPECT_TRUE(result.ok) << result.message;
}

TEST(OwnMechanism, AGptLearnsWithItAndReadsTokenByToken) {
  Rng rng(2);
  GptConfig config;
  config.vocabulary = 6;
  config.width = 16;
  config.heads = 1;
  config.layers = 2;
  config.attention = gaussian();
  Gpt model(config, rng);
  AdamW optimizer(parameters(model));
  const std::vector<int64_t> text{0, 3, 1, 4, 2, 5, 0, 3};
  const TokenBatch tokens(std::vector<int64_t>(text.begin(), text.end() - 1), Ragged{7});
  const std::vector<int64_t> next(text.begin() + 1, text.end());
  double first = 0, last = 0;
  for (uint64_t step = 0; step < 60; ++step) {
    Context ctx(1, step);
    const Tensor loss = cross_entropy(model.forward(tokens, ctx), next);
    loss.backward();
    optimizer.step(1e-2);
    optimizer.zero_grad();
    (step == 0 ? first : last) = loss.item();
  }
  EXPECT_LT(last, 0.1 * first);
  NoGrad guard;
  const std::vector<std::vector<int64_t>> prompt{{0, 3, 1}};
  const auto decoder = model.start(prompt);
  const auto found = search(*decoder, {.begin = 0, .end = 5, .first = {1}, .max_lengths = {4}});
  EXPECT_EQ(found[0][0].tokens, (std::vector<int64_t>{4, 2}));
  EXPECT_TRUE(found[0][0].complete);
}

TEST(OwnMechanism, WhatDoesNotFitSaysSo) {
  Rng rng(1);
  const auto message = [&](const GptConfig& config) -> std::string {
    try {
      Gpt model(config, rng);
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "";
  };
  GptConfig config;
  config.attention = Mechanism([](const AttentionConfig&, Rng&) { return std::unique_ptr<Attention>(); }, "empty");
  EXPECT_EQ(message(config), "attention 'empty': its factory made nothing");
  config.attention = [](AttentionConfig c, Rng& r) {
    c.query = 3;
    return std::make_unique<GaussianAttention>(c, r);
  };
  EXPECT_EQ(message(config), "attention 'own' gives no context of the model's width");
  config.attention = gaussian();
  config.positions = Positions::rotary;
  EXPECT_EQ(message(config), "positions 'rotary' need attention 'multi-head', not 'own'");
  config.attention = "gaussian";
  EXPECT_EQ(message(config).substr(0, 35), "no attention mechanism 'gaussian'; ");
}

}  // namespace
}  // namespace qkv
