// The recurrent encoder-decoder: training pass, step-by-step decoding, traces.
#include "qkv/models/seq2seq.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "support/fixture.h"

namespace qkv {
namespace {

struct Case {
  std::string attention;
  Placement placement = Placement::after;
  CellKind cell = CellKind::lstm;
  bool bidirectional = false;
  int64_t layers = 1;
};

Seq2SeqConfig config_of(const Case& c) {
  Seq2SeqConfig config;
  config.source_vocabulary = 7;
  config.target_vocabulary = 6;
  config.embedding = 3;
  config.hidden = 4;
  config.layers = c.layers;
  config.cell = c.cell;
  config.bidirectional = c.bidirectional;
  config.attention = c.attention;
  config.placement = c.placement;
  config.attention_config.heads = c.attention == "multi-head" ? 2 : 1;
  return config;
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  std::string name = c.attention + (c.placement == Placement::before ? "Before" : "After") +
                     (c.cell == CellKind::gru ? "Gru" : "Lstm") + (c.bidirectional ? "Both" : "One") +
                     std::to_string(c.layers);
  name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
  return name;
}

const std::vector<std::vector<int64_t>> kSources{{1, 2, 3}, {4}, {5, 6, 1, 2}}, kTargets{{0, 1}, {0, 2, 3, 4}, {0}};

class Models : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Seq2Seq, Models,
                         ::testing::Values(Case{"none"}, Case{"dot"}, Case{"mean"},
                                           Case{"additive", Placement::after, CellKind::gru, true, 2},
                                           Case{"scaled-dot", Placement::before, CellKind::gru, true},
                                           Case{"none", Placement::before, CellKind::gru, true},
                                           Case{"mean", Placement::before, CellKind::lstm, true, 2},
                                           Case{"general", Placement::before, CellKind::lstm, true},
                                           Case{"multi-head", Placement::before, CellKind::gru, true},
                                           Case{"multi-head", Placement::after, CellKind::lstm, true}),
                         case_name);

TEST_P(Models, Gradients) {
  Rng rng(2);
  Seq2Seq model(config_of(GetParam()), rng);
  const TokenBatch source(kSources), target(kTargets);
  const GradCheckResult result = testing::check_module(model, {}, [&](const std::vector<Tensor>&) {
    Context ctx;
    return model.forward(source, target, ctx);
  });
  EXPECT_TRUE(result.ok) << result.message;
}

TEST_P(Models, TogetherAndAloneAndStepByStepAgree) {
  Rng rng(2);
  const Seq2Seq model(config_of(GetParam()), rng);
  Context ctx;
  const TokenBatch source(kSources), target(kTargets);
  const Tensor together = model.forward(source, target, ctx);  // [7, V]
  for (size_t b = 0; b < kSources.size(); ++b) {
    const std::vector<std::vector<int64_t>> one{kSources[b]}, to{kTargets[b]};
    const Tensor alone = model.forward(TokenBatch(one), TokenBatch(to), ctx);
    const auto begin = target.batch.begin(static_cast<int64_t>(b));
    EXPECT_LE(testing::distance(alone, contiguous(slice(together, 0, begin, begin + alone.dim(0)))), 1e-5);
    const auto steps = model.start(TokenBatch(one));
    for (int64_t t = 0; t < alone.dim(0); ++t) {
      const Tensor logits = steps->step({&kTargets[b][static_cast<size_t>(t)], 1});
      EXPECT_LE(testing::distance(logits, contiguous(slice(alone, 0, t, t + 1))), 1e-5) << "step " << t;
    }
  }
}

TEST_P(Models, SelectedRowsGoOnAsTheyWould) {
  Rng rng(3);
  const Seq2Seq model(config_of(GetParam()), rng);
  const TokenBatch source(kSources);
  const auto a = model.start(source), b = model.start(source);
  const std::vector<int64_t> first{0, 0, 0}, keep{0, 2, 2};
  a->step(first);
  b->step(first);
  b->select(keep);
  const Tensor plain = a->step(std::vector<int64_t>{1, 2, 3}), moved = b->step(std::vector<int64_t>{1, 3, 3});
  EXPECT_LE(testing::distance(gather_rows(plain, keep), moved), 1e-5);
}

TEST_P(Models, TraceSumsToOneAndChangesNothing) {
  Rng rng(2);
  const Seq2Seq model(config_of(GetParam()), rng);
  const TokenBatch source(kSources), target(kTargets);
  Context plain, traced;
  TraceList list;
  traced.trace = &list;
  testing::expect_same_bits(model.forward(source, target, plain), model.forward(source, target, traced), "logits");
  if (GetParam().attention == "none") {
    EXPECT_TRUE(list.traces().empty());
    return;
  }
  ASSERT_EQ(list.traces().size(), 1u);
  const AttentionTrace& trace = list.traces()[0];
  EXPECT_EQ(trace.site, "cross");
  EXPECT_EQ(trace.B, 3);
  const Tensor weights = trace.scores({.b = 1, .h = 0, .row_begin = 0, .row_end = 4});
  EXPECT_EQ(weights.shape().str(), "[4,4]");
  for (int64_t i = 0; i < 4; ++i) {  // the source of sentence 1 has one token
    EXPECT_NEAR(weights.at({i, 0}), 1.0, 1e-6);
    EXPECT_EQ(weights.at({i, 1}), 0.0);
  }
}

void expect_like_pytorch(const std::string& name, Seq2SeqConfig config) {
  const testing::Fixture f(name);
  config.source_vocabulary = config.target_vocabulary = 6;
  Rng rng(1);
  Seq2Seq model(config, rng);
  testing::load_parameters(model, f);
  Context ctx;
  const Tensor logits = model.forward({f.ints("source"), Ragged(f.ints("source_lengths"))},
                                      {f.ints("inputs"), Ragged(f.ints("target_lengths"))}, ctx);
  testing::expect_close(logits, f["logits"], 1e-5, "logits");
  const Tensor loss = cross_entropy(logits, f.ints("targets"), {.label_smoothing = 0.1});
  testing::expect_close(loss, f["loss"], 1e-5, "loss");
  loss.backward();
  testing::expect_gradients(model, f, 1e-5);
}

TEST(Seq2Seq, LstmWithDotAttentionIsPyTorchs) { expect_like_pytorch("nn/seq2seq_lstm.txt", config_of({"dot"})); }

TEST(Seq2Seq, GruThatAttendsBeforeEachStepIsPyTorchs) {
  Seq2SeqConfig config = config_of({"general", Placement::before, CellKind::gru, true});
  config.attention_config.scale = 0.5;  // 1/√4
  expect_like_pytorch("nn/seq2seq_gru.txt", config);
}

// The attention decoder of a well-known textbook: additive attention, two GRU layers.
TEST(Seq2Seq, TextbookDecoderShapes) {
  Seq2SeqConfig config;
  config.source_vocabulary = config.target_vocabulary = 10;
  config.embedding = 8;
  config.hidden = 16;
  config.layers = 2;
  config.cell = CellKind::gru;
  config.attention = "additive";
  config.placement = Placement::before;
  Rng rng(1);
  const Seq2Seq model(config, rng);
  const TokenBatch tokens(std::vector<int64_t>(28, 0), Ragged::equal(4, 7));
  Context ctx;
  const Seq2Seq::Memory memory = model.encode(tokens, ctx);
  EXPECT_EQ(reshape(memory.states, {4, 7, -1}).shape().str(), "[4,7,16]");
  EXPECT_EQ(memory.initial.size(), 2u);
  EXPECT_EQ(memory.initial[1].h.shape().str(), "[4,16]");
  EXPECT_EQ(reshape(model.decode(memory, tokens, ctx), {4, 7, -1}).shape().str(), "[4,7,10]");
}

TEST(Seq2Seq, SameBitsForAnyNumberOfThreads) {
  const auto run = [&](int threads) {
    set_num_threads(threads);
    Seq2SeqConfig config = config_of({"additive", Placement::before, CellKind::gru, true, 2});
    config.dropout = 0.3;
    Rng rng(5);
    Seq2Seq model(config, rng);
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

TEST(Seq2Seq, OwnGuessesReplaceTargetsAsOftenAsAsked) {
  Rng rng(2), draw(1);
  const Seq2Seq model(config_of({"dot"}), rng);
  const TokenBatch source(kSources), target(kTargets);
  EXPECT_EQ(model.mixed_inputs(source, target, 1, draw).ids, target.ids);
  const TokenBatch own = model.mixed_inputs(source, target, 0, draw);
  // With ratio 0 the inputs are greedy output: each is the best guess after those before it.
  const auto steps = model.start(source);
  Tensor logits = steps->step(std::vector<int64_t>{0, 0, 0});
  const auto argmax = [&](int64_t row) {
    int64_t best = 0;
    for (int64_t j = 1; j < 6; ++j) best = logits.at({row, j}) > logits.at({row, best}) ? j : best;
    return best;
  };
  EXPECT_EQ(own.ids[1], argmax(0));
  EXPECT_EQ(own.ids[3], argmax(1));
  EXPECT_EQ(own.ids[0], 0);
}

// A model this small learns to reverse three strings by heart within a few steps: everything is connected.
TEST(Seq2Seq, LearnsAFewStringsByHeart) {
  Seq2SeqConfig config = config_of({"dot"});
  config.embedding = 8;
  config.hidden = 16;
  Rng rng(1);
  Seq2Seq model(config, rng);
  const TokenBatch source(kSources);
  const std::vector<std::vector<int64_t>> inputs{{0, 3, 2, 1}, {0, 4}, {0, 2, 1, 3, 5}};
  const TokenBatch in(inputs);
  const std::vector<int64_t> targets{3, 2, 1, 0, 4, 0, 2, 1, 3, 5, 0};
  double loss_value = 0;
  for (int step = 0; step < 150; ++step) {
    Context ctx(1, static_cast<uint64_t>(step));
    const Tensor loss = cross_entropy(model.forward(source, in, ctx), targets);
    loss.backward();
    loss_value = loss.item();
    for (NamedParameter& p : parameters(model)) {
      const Tensor g = p.value.grad();
      for (int64_t i = 0; i < g.numel(); ++i) p.value.f32()[i] -= 0.5f * g.f32()[i];
      p.value.zero_grad();
    }
  }
  EXPECT_LT(loss_value, 0.05);
  const auto decoder = model.start(source);
  const auto found = search(*decoder, {.begin = 0, .end = 0, .max_lengths = {8}});
  for (size_t b = 0; b < 3; ++b) {
    EXPECT_EQ(found[b][0].tokens, (std::vector<int64_t>{inputs[b].begin() + 1, inputs[b].end()}));
  }
}

TEST(Seq2Seq, WrongSettingsSaySo) {
  Rng rng(1);
  const auto message = [&](const Seq2SeqConfig& config) -> std::string {
    try {
      Seq2Seq model(config, rng);
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "";
  };
  Seq2SeqConfig config = config_of({"dot"});
  config.attention = "fancy";
  EXPECT_EQ(message(config),
            "no attention mechanism 'fancy'; available: none, mean, dot, scaled-dot, general, additive, multi-head, "
            "synthesizer");
  config.attention = "synthesizer";
  EXPECT_EQ(message(config), "attention 'synthesizer' cannot be used as cross-attention");
  config = config_of({"dot", Placement::after, CellKind::lstm, true});
  EXPECT_EQ(message(config),
            "attention 'dot' needs queries as wide as the memory, not 4 and 8; 'general' or 'scaled-dot' take any "
            "widths");
  config = config_of({"dot"});
  config.hidden = 0;
  EXPECT_NE(message(config).find("must be at least 1, not 0"), std::string::npos);
}

}  // namespace
}  // namespace qkv
