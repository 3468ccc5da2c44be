// Transformer, GPT and ViT: against PyTorch, step by step against whole sequences, gradients, search.
#include "qkv/models/transformer.h"

#include <gtest/gtest.h>

#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "qkv/models/gpt.h"
#include "qkv/models/vit.h"
#include "support/fixture.h"

namespace qkv {
namespace {

using testing::Fixture;

TransformerConfig tiny_transformer() {
  TransformerConfig c;
  c.source_vocabulary = c.target_vocabulary = 7;
  c.width = 6;
  c.heads = 2;
  c.inner = 8;
  c.encoder_layers = 2;
  c.decoder_layers = 1;
  c.longest = 8;
  c.dropout = 0;
  return c;
}

GptConfig tiny_gpt() {
  GptConfig c;
  c.vocabulary = 9;
  c.block = 8;
  c.width = 8;
  c.heads = 2;
  c.layers = 2;
  c.inner = 8;
  return c;
}

template <class Model>
void expect_loss_and_gradients(Model& model, const Tensor& logits, const Fixture& f) {
  testing::expect_close(logits, f["logits"], 1e-4, "logits");
  const Tensor loss = cross_entropy(logits, f.ints("targets"));
  testing::expect_close(loss, f["loss"], 1e-5, "loss");
  loss.backward();
  testing::expect_gradients(model, f, 1e-4);
}

TEST(Transformer, IsPyTorchs) {
  for (bool pre_norm : {false, true}) {
    const Fixture f(pre_norm ? "nn/transformer_pre_norm.txt" : "nn/transformer_post_norm.txt");
    TransformerConfig config = tiny_transformer();
    config.pre_norm = pre_norm;
    config.positions = Positions::learned;
    config.tying = Tying::none;
    Rng rng(1);
    Transformer model(config, rng);
    testing::load_parameters(model, f);
    Context ctx;
    const Tensor logits = model.forward({f.ints("source"), Ragged(f.ints("source_lengths"))},
                                        {f.ints("inputs"), Ragged(f.ints("target_lengths"))}, ctx);
    expect_loss_and_gradients(model, logits, f);
  }
}

TEST(Gpt, IsPyTorchs) {
  const Fixture f("nn/gpt.txt");
  GptConfig config = tiny_gpt();
  config.width = 6;
  Rng rng(1);
  Gpt model(config, rng);
  testing::load_parameters(model, f);
  Context ctx;
  expect_loss_and_gradients(model, model.forward({f.ints("tokens"), Ragged(f.ints("lengths"))}, ctx), f);
}

TEST(Vit, IsPyTorchs) {
  const Fixture f("nn/vit.txt");
  VitConfig config;
  config.height = 4;
  config.image_width = 6;
  config.channels = 2;
  config.patch = 2;
  config.width = 6;
  config.heads = 2;
  config.layers = 2;
  config.inner = 8;
  config.classes = 3;
  Rng rng(1);
  Vit model(config, rng);
  testing::load_parameters(model, f);
  Context ctx;
  expect_loss_and_gradients(model, model.forward(f["images"], ctx), f);
}

TEST(Vit, ShapesAndErrors) {
  Rng rng(1);
  Vit model(VitConfig{}, rng);
  Context ctx;
  EXPECT_EQ(model.tokens(), 50);
  EXPECT_EQ(model.forward(Tensor::zeros({3, 28, 28}), ctx).shape().str(), "[3,10]");
  EXPECT_THROW(model.forward(Tensor::zeros({3, 28, 27}), ctx), ShapeError);
  VitConfig odd;
  odd.patch = 5;
  EXPECT_THROW(Vit(odd, rng), ConfigError);
}

// --- Step by step ----------------------------------------------------------------------------------------------------

const std::vector<std::vector<int64_t>> kSources{{1, 2, 3}, {4}, {5, 6, 1, 2}},
    kTargets{{0, 1, 5}, {0, 2, 3}, {0, 4, 4}};

void expect_steps_equal_whole(const TransformerConfig& config, const std::string& what) {
  Rng rng(4);
  const Transformer model(config, rng);
  Context ctx;
  const Tensor whole = model.forward(TokenBatch(kSources), TokenBatch(kTargets), ctx);  // [9, V]
  const auto steps = model.start(TokenBatch(kSources));
  for (int64_t t = 0; t < 3; ++t) {
    std::vector<int64_t> tokens, rows;
    for (int64_t b = 0; b < 3; ++b) {
      tokens.push_back(kTargets[static_cast<size_t>(b)][static_cast<size_t>(t)]);
      rows.push_back(3 * b + t);
    }
    EXPECT_LE(testing::distance(steps->step(tokens), gather_rows(whole, rows)), 1e-5) << what << ", step " << t;
  }
}

TEST(Transformer, StepsEqualTheWhole) {
  for (const std::string& positions : choices<Positions>()) {
    for (bool pre_norm : {false, true}) {
      TransformerConfig config = tiny_transformer();
      config.width = 8;
      config.positions = parse<Positions>(positions);
      config.pre_norm = pre_norm;
      config.tying = pre_norm ? Tying::output : Tying::all;
      expect_steps_equal_whole(config, positions);
    }
  }
  for (const char* mechanism : {"mean", "dot", "scaled-dot", "general", "additive"}) {
    TransformerConfig config = tiny_transformer();
    config.self_attention = config.cross_attention = mechanism;
    expect_steps_equal_whole(config, mechanism);
  }
  TransformerConfig config = tiny_transformer();
  config.self_attention = "synthesizer";
  config.kv_heads = 1;
  expect_steps_equal_whole(config, "synthesizer");
}

TEST(Gpt, StepsEqualTheWhole) {
  for (const std::string& positions : choices<Positions>()) {
    for (const char* mechanism : {"multi-head", "synthesizer", "scaled-dot"}) {
      GptConfig config = tiny_gpt();
      config.positions = parse<Positions>(positions);
      config.attention = mechanism;
      if ((config.positions == Positions::alibi || config.positions == Positions::rotary) &&
          config.attention.name() != "multi-head") {
        Rng any(1);
        EXPECT_THROW(Gpt(config, any), ConfigError) << positions << " " << mechanism;
        continue;
      }
      Rng rng(4);
      const Gpt model(config, rng);
      Context ctx;
      const std::vector<std::vector<int64_t>> all{{1, 2, 3, 4, 5}, {6, 7, 8}};
      const Tensor whole = model.forward(TokenBatch(all), ctx);
      const std::vector<std::vector<int64_t>> prompts{{1, 2, 3, 4}, {6, 7}};
      const auto steps = model.start(prompts);
      const Tensor first = steps->step(std::vector<int64_t>{4, 7}), second = steps->step(std::vector<int64_t>{5, 8});
      const std::string what = std::string(positions) + " " + mechanism;
      EXPECT_LE(testing::distance(first, gather_rows(whole, std::vector<int64_t>{3, 6})), 1e-5) << what;
      EXPECT_LE(testing::distance(second, gather_rows(whole, std::vector<int64_t>{4, 7})), 1e-5) << what;
    }
  }
}

TEST(Gpt, RaggedEqualsOneByOneAndGroupedQueriesWork) {
  GptConfig config = tiny_gpt();
  config.heads = 4;
  config.kv_heads = 2;
  Rng rng(4);
  const Gpt model(config, rng);
  Context ctx;
  const std::vector<std::vector<int64_t>> all{{1, 2, 3, 4, 5}, {6}, {7, 8}};
  const TokenBatch tokens(all);
  const Tensor together = model.forward(tokens, ctx);
  for (size_t b = 0; b < all.size(); ++b) {
    const std::vector<std::vector<int64_t>> one{all[b]};
    const int64_t begin = tokens.batch.begin(static_cast<int64_t>(b));
    const Tensor part = contiguous(slice(together, 0, begin, begin + static_cast<int64_t>(all[b].size())));
    EXPECT_LE(testing::distance(model.forward(TokenBatch(one), ctx), part), 1e-5);
  }
}

TEST(Gpt, GrowsItsCacheAndEndsAtItsBlock) {
  GptConfig config = tiny_gpt();
  config.block = 40;
  Rng rng(4);
  const Gpt model(config, rng);
  Context ctx;
  std::vector<std::vector<int64_t>> text(1);
  for (int64_t i = 0; i < 40; ++i) text[0].push_back(i % 9);
  const Tensor whole = model.forward(TokenBatch(text), ctx);
  const std::vector<std::vector<int64_t>> prompt{{text[0][0]}};
  const auto steps = model.start(prompt);
  for (int64_t i = 0; i < 40; ++i) {
    const Tensor logits = steps->step({&text[0][static_cast<size_t>(i)], 1});
    EXPECT_LE(testing::distance(logits, contiguous(slice(whole, 0, i, i + 1))), 2e-5) << i;
  }
  EXPECT_THROW(steps->step(std::vector<int64_t>{1}), ShapeError);
  EXPECT_THROW(model.start(std::vector<std::vector<int64_t>>{{}}), ConfigError);
}

GptConfig wide_gpt(Positions positions) {
  GptConfig config = tiny_gpt();
  config.block = 80;
  config.width = 66;  // heads of 22: vectors and a rest
  config.heads = 3;
  config.kv_heads = 1;
  config.positions = positions;
  return config;
}

// Rows that continue one beginning share what was read until each writes its own.
TEST(Gpt, SelectedRowsGoOnByThemselves) {
  for (const std::string& positions : choices<Positions>()) {
    for (const char* mechanism : {"multi-head", "synthesizer"}) {
      GptConfig config = wide_gpt(parse<Positions>(positions));
      config.attention = mechanism;
      if (row_of(config.positions).in_attention() && config.attention.name() != "multi-head") continue;
      Rng rng(5);
      const Gpt model(config, rng);
      std::vector<std::vector<int64_t>> texts{{1, 2, 3}, {4}};
      const auto steps = model.start(texts);
      std::vector<int64_t> rows{0, 1};
      Tensor scores;
      for (int64_t t = 0; t < 70; ++t) {
        if (t % 10 == 5) {  // grows to 20 rows and shrinks again
          rows = t < 40 ? std::vector<int64_t>{0, 0, 1, 1} : std::vector<int64_t>{1, 0, 2};
          if (t == 25) rows = std::vector<int64_t>{0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3};
          steps->select(rows);
          std::vector<std::vector<int64_t>> kept;
          for (int64_t r : rows) kept.push_back(texts[static_cast<size_t>(r)]);
          texts = kept;
        }
        std::vector<int64_t> tokens;
        for (size_t r = 0; r < texts.size(); ++r) {
          tokens.push_back(texts[r].back());
          texts[r].push_back((t + 3 * static_cast<int64_t>(r)) % 9);
        }
        scores = steps->step(tokens);
      }
      std::vector<int64_t> last;
      for (auto& text : texts) text.pop_back();
      const TokenBatch whole(texts);
      for (int64_t r = 0; r < whole.batch.sequences(); ++r) last.push_back(whole.batch.begin(r + 1) - 1);
      Context ctx;
      EXPECT_LE(testing::distance(scores, gather_rows(model.forward(whole, ctx), last)), 2e-5)
          << positions << " " << mechanism;
    }
  }
}

TEST(Steps, SameBitsForAnyNumberOfThreads) {
  Rng rng(5);
  const Gpt gpt(wide_gpt(Positions::rotary), rng);
  TransformerConfig config = tiny_transformer();
  config.width = 64;
  config.inner = 1024;  // enough for more than one thread
  const Transformer transformer(config, rng);
  const int before = num_threads();
  std::vector<float> want;
  for (const int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    std::vector<float> got;
    const auto write = [&](StepDecoder& steps) {
      for (int64_t t = 0; t < 40; ++t) {
        const std::vector<int64_t> tokens(static_cast<size_t>(steps.rows()), t % 7);
        const std::vector<float> scores = steps.step(tokens).to_vector();
        got.insert(got.end(), scores.begin(), scores.end());
      }
    };
    write(*gpt.start(std::vector<std::vector<int64_t>>{{1, 2, 3}, {4}}));
    write(*transformer.start(TokenBatch(kSources)));
    if (want.empty()) want = got;
    EXPECT_EQ(got, want) << threads << " threads";
  }
  set_num_threads(before);
}

TEST(Transformer, BeamDoesNotDependOnTheBatch) {
  TransformerConfig config = tiny_transformer();
  Rng rng(11);
  const Transformer model(config, rng);
  const SearchOptions options{.begin = 0, .end = 6, .beam = 3, .n_best = 2, .max_lengths = {6}};
  const auto together = search(*model.start(TokenBatch(kSources)), options);
  for (size_t b = 0; b < kSources.size(); ++b) {
    const std::vector<std::vector<int64_t>> one{kSources[b]};
    const auto alone = search(*model.start(TokenBatch(one)), options);
    ASSERT_EQ(alone[0].size(), together[b].size());
    for (size_t i = 0; i < alone[0].size(); ++i) {
      EXPECT_EQ(alone[0][i].tokens, together[b][i].tokens);
      EXPECT_NEAR(alone[0][i].log_probability, together[b][i].log_probability, 1e-4);
    }
  }
}

// --- Training --------------------------------------------------------------------------------------------------------

TEST(Transformer, Gradients) {
  TransformerConfig config = tiny_transformer();
  config.width = 4;
  config.inner = 4;
  config.encoder_layers = 1;
  config.dropout = 0.2;
  config.tying = Tying::all;
  Rng rng(3);
  Transformer model(config, rng);
  const TokenBatch source(kSources), target(kTargets);
  const GradCheckResult result = testing::check_module(model, {}, [&](const std::vector<Tensor>&) {
    Context ctx(1, 2);
    return model.forward(source, target, ctx);
  });
  EXPECT_TRUE(result.ok) << result.message;
}

TEST(Gpt, Gradients) {
  for (const char* mechanism : {"multi-head", "synthesizer"}) {
    GptConfig config = tiny_gpt();
    config.width = 4;
    config.layers = 1;
    config.attention = mechanism;
    config.positions = config.attention.name() == "multi-head" ? Positions::rotary : Positions::learned;
    config.dropout = 0.2;
    Rng rng(3);
    Gpt model(config, rng);
    // A layer norm over four values is sharply curved: a smaller step keeps the differences' own error below 1e-6.
    const GradCheckResult result = testing::check_module(model, {},
                                                         [&](const std::vector<Tensor>&) {
                                                           Context ctx(1, 2);
                                                           return model.forward(TokenBatch(kSources), ctx);
                                                         },
                                                         {.step = 1e-6});
    EXPECT_TRUE(result.ok) << mechanism << ": " << result.message;
  }
}

TEST(Transformer, SameBitsForAnyNumberOfThreads) {
  const auto run = [&](int threads) {
    set_num_threads(threads);
    TransformerConfig config = tiny_transformer();
    config.width = 32;
    config.dropout = 0.3;
    Rng rng(5);
    Transformer model(config, rng);
    Context ctx(3, 4);
    const Tensor logits = model.forward(TokenBatch(kSources), TokenBatch(kTargets), ctx);
    Rng probe(6);
    logits.backward(Tensor::randn(logits.shape(), probe));
    std::vector<Tensor> all{logits};
    for (const NamedParameter& p : parameters(model)) all.push_back(p.value.grad());
    return all;
  };
  const int before = num_threads();
  const std::vector<Tensor> one = run(1), two = run(2);
  set_num_threads(before);
  for (size_t i = 0; i < one.size(); ++i) testing::expect_same_bits(one[i], two[i], std::to_string(i));
}

TEST(Transformer, TracesEverySite) {
  Rng rng(4);
  const Transformer model(tiny_transformer(), rng);
  Context ctx;
  TraceList list;
  ctx.trace = &list;
  model.forward(TokenBatch(kSources), TokenBatch(kTargets), ctx);
  std::vector<std::string> seen;
  for (const AttentionTrace& t : list.traces()) seen.push_back(t.site + std::to_string(t.layer));
  EXPECT_EQ(seen, (std::vector<std::string>{"encoder0", "encoder1", "decoder0", "cross0"}));
  EXPECT_TRUE(list.traces()[2].causal);
  EXPECT_EQ(list.traces()[3].Lk, 4);
}

TEST(Transformer, PublishedSizes) {
  Rng rng(1);
  GptConfig gpt;
  Gpt a(gpt, rng);
  EXPECT_EQ(parameter_count(a), 256 * 256 + 128 * 256 + 4 * (12 * 256 * 256 + 13 * 256) + 512 + 256 * 256);
  EXPECT_NEAR(static_cast<double>(parameter_count(a)), 3.3e6, 0.1e6);
  TransformerConfig wrong = tiny_transformer();
  wrong.tying = Tying::all;
  wrong.target_vocabulary = 9;
  EXPECT_THROW(Transformer(wrong, rng), ConfigError);
  wrong = tiny_transformer();
  wrong.heads = 4;
  EXPECT_THROW(Transformer(wrong, rng), ConfigError);
  wrong = tiny_transformer();
  wrong.cross_attention = "none";
  EXPECT_THROW(Transformer(wrong, rng), ConfigError);
  EXPECT_THROW(parse<Positions>("gps"), ConfigError);
}

}  // namespace
}  // namespace qkv
