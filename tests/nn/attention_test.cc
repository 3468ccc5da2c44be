// Every mechanism of the table: gradients, ragged batches, traces, normalisers; multi-head against PyTorch.
#include "qkv/nn/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "qkv/base/error.h"
#include "support/fixture.h"

namespace qkv {
namespace {

using testing::Fixture;

constexpr int64_t kWidth = 4;

struct Case {
  std::string name;
  bool self = false, rotary = false;
  int64_t heads = 1, kv_heads = 0;
  Normaliser normaliser = Normaliser::softmax;
};

AttentionConfig config_of(const Case& c) {
  AttentionConfig config;
  config.query = config.memory = kWidth;
  config.self = c.self;
  if (c.rotary) config.positions = Positions::rotary;
  config.heads = c.heads;
  config.kv_heads = c.kv_heads;
  config.normaliser = c.normaliser;
  config.block = 5;
  return config;
}

// Every row of the table wherever it makes sense, and multi-head's variants.
std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const AttentionSpec& row : attention_table()) {
    if (row.in_cross) cases.push_back({row.name});
    if (row.in_self) cases.push_back({row.name, true});
  }
  cases.push_back({"multi-head", true, false, 2});
  cases.push_back({"multi-head", true, true, 2});
  cases.push_back({"multi-head", true, false, 4, 2});
  cases.push_back({"multi-head", false, false, 2, 1});
  cases.push_back({"synthesizer", true, false, 2});
  for (Normaliser n : {Normaliser::sparsemax, Normaliser::entmax15, Normaliser::hard}) {
    cases.push_back({"scaled-dot", false, false, 1, 0, n});
    cases.push_back({"additive", false, false, 1, 0, n});
  }
  return cases;
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  std::string name = c.name + (c.self ? "Self" : "Cross") + (c.rotary ? "Rotary" : "") + std::to_string(c.heads) +
                     std::to_string(c.kv_heads) + "n" + std::to_string(static_cast<int>(c.normaliser));
  name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
  return name;
}

// A mechanism at work: ragged queries, ragged memory.
struct Scene {
  explicit Scene(const Case& c) : is_self(c.self) {
    Rng rng(3);
    attention = Mechanism(c.name).make(config_of(c), rng);
    call.queries = Ragged{2, 3, 1};
    call.memory = c.self ? call.queries : Ragged{3, 1, 2};
    call.causal = c.self;
    query = Tensor::randn({6, kWidth}, rng);
    memory = Tensor::randn({6, kWidth}, rng);
  }
  Tensor run(Context& ctx) const { return attention->forward(query, is_self ? query : memory, call, ctx); }
  void visit(Visitor& see) {
    see("attention", attention);
    see("query", query);
    if (!is_self) see("memory", memory);
  }
  bool is_self;
  std::unique_ptr<Attention> attention;
  AttentionCall call;
  Tensor query, memory;
};

Tensor part(const Tensor& x, const Ragged& rows, int64_t b) {
  return contiguous(slice(x, 0, rows.begin(b), rows.begin(b + 1)));
}

class Mechanisms : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Table, Mechanisms, ::testing::ValuesIn(all_cases()), case_name);

TEST_P(Mechanisms, Gradients) {
  Scene scene(GetParam());
  if (scene.attention->width() == 0) {
    EXPECT_EQ(parameter_count(*scene.attention), 0);
    return;
  }
  const GradCheckResult result = testing::check_module(scene, {}, [&](const std::vector<Tensor>&) {
    Context ctx;
    return scene.run(ctx);
  });
  EXPECT_TRUE(result.ok) << result.message;
}

TEST_P(Mechanisms, RaggedEqualsOneByOne) {
  const Scene scene(GetParam());
  Context ctx;
  const Tensor together = scene.run(ctx);
  EXPECT_EQ(together.shape(), (Shape{6, scene.attention->width()}));
  for (int64_t b = 0; b < 3; ++b) {
    AttentionCall call = scene.call;
    call.queries = Ragged{scene.call.queries.length(b)};
    call.memory = Ragged{scene.call.memory.length(b)};
    const Tensor query = part(scene.query, scene.call.queries, b);
    const Tensor memory = scene.is_self ? query : part(scene.memory, scene.call.memory, b);
    const Tensor alone = scene.attention->forward(query, memory, call, ctx);
    EXPECT_LE(testing::distance(alone, part(together, scene.call.queries, b)), 1e-5) << "sequence " << b;
  }
}

TEST_P(Mechanisms, TraceSumsToOneAndChangesNothing) {
  const Scene scene(GetParam());
  Context plain, traced;
  TraceList list;
  traced.trace = &list;
  testing::expect_same_bits(scene.run(plain), scene.run(traced), "result");
  if (GetParam().name == "none") {
    EXPECT_TRUE(list.traces().empty());
    return;
  }
  ASSERT_EQ(list.traces().size(), 1u);
  const AttentionTrace& trace = list.traces()[0];
  EXPECT_EQ(trace.H, GetParam().heads);
  EXPECT_EQ(trace.Lq, 3);
  for (int64_t h = 0; h < trace.H; ++h) {
    for (int64_t b = 0; b < 3; ++b) {
      const int64_t Lq = scene.call.queries.length(b), Lk = scene.call.memory.length(b);
      const Tensor w = trace.scores({.b = b, .h = h, .row_begin = 0, .row_end = Lq});
      for (int64_t i = 0; i < Lq; ++i) {
        double total = 0;
        for (int64_t j = 0; j < w.dim(1); ++j) {
          total += w.at({i, j});
          if (j >= Lk || (trace.causal && j > i)) {
            EXPECT_EQ(w.at({i, j}), 0.0);
          }
        }
        EXPECT_NEAR(total, 1.0, 1e-5);
      }
    }
  }
}

TEST_P(Mechanisms, ACellLeadsFromItsVectorsToTheWeight) {
  if (GetParam().name == "none") return;
  const Scene scene(GetParam());
  Context ctx;
  TraceList list;
  ctx.trace = &list;
  scene.run(ctx);
  const AttentionTrace& trace = list.traces()[0];
  const int64_t b = 1, h = trace.H - 1, i = scene.call.queries.length(b) - 1;
  const Tensor weights = trace.scores({.b = b, .h = h, .row_begin = i, .row_end = i + 1});
  const Tensor scores = trace.scores({.b = b, .h = h, .row_begin = i, .row_end = i + 1, .stage = ScoreStage::biased});
  std::vector<double> output;
  for (int64_t j = 0; j < scene.call.memory.length(b); ++j) {
    const AttentionCell c = trace.cell(b, h, i, j);
    double sum = 0;
    for (const double term : c.terms) sum += term;
    EXPECT_NEAR(c.product, sum, 1e-9);
    EXPECT_NEAR(c.raw, c.product * c.scale, 1e-4);
    EXPECT_EQ(c.weight, weights.at({0, j}));
    EXPECT_EQ(c.biased, scores.at({0, j}));
    const bool hidden = trace.causal && j > i;
    EXPECT_EQ(std::isinf(c.biased), hidden);
    if (c.normaliser == Normaliser::softmax) {
      EXPECT_NEAR(c.weight, hidden ? 0 : std::exp(c.biased - c.largest) / c.total, 1e-5);
    }
    output.resize(c.value.size());
    for (size_t d = 0; d < output.size(); ++d) output[d] += c.weight * c.value[d];
  }
  const AttentionCell c = trace.cell(b, h, i, 0);
  ASSERT_EQ(c.output.size(), output.size());
  for (size_t d = 0; d < output.size(); ++d) EXPECT_NEAR(c.output[d], output[d], 1e-6);
}

TEST(Attention, MultiHeadSelfIsPyTorchs) {
  const Fixture f("nn/multi_head_self.txt");
  Rng rng(1);
  AttentionConfig config;
  config.query = 6;
  config.heads = 3;
  config.self = true;
  const auto attention = Mechanism("multi-head").make(config, rng);
  testing::load_parameters(*attention, f);
  AttentionCall call;
  call.queries = call.memory = Ragged(f.ints("lengths"));
  call.causal = true;
  const Tensor x = f["q"].set_requires_grad(true);
  Context ctx;
  TraceList list;
  ctx.trace = &list;
  const Tensor out = attention->forward(x, x, call, ctx);
  testing::expect_close(out, f["out"], 1e-5, "out");
  testing::expect_close(
      contiguous(slice(list.traces()[0].scores({.b = 1, .h = 2, .row_begin = 0, .row_end = 2}), 1, 0, 2)),
      f["weights_1_2"], 1e-5, "weights");
  out.backward(f["probe"]);
  testing::expect_close(x.grad(), f["grad_q"], 1e-5, "d_x");
  testing::expect_gradients(*attention, f, 1e-5);
}

TEST(Attention, MultiHeadCrossIsPyTorchs) {
  const Fixture f("nn/multi_head_cross.txt");
  Rng rng(1);
  AttentionConfig config;
  config.query = 6;
  config.memory = 5;
  config.heads = 3;
  const auto attention = Mechanism("multi-head").make(config, rng);
  testing::load_parameters(*attention, f);
  AttentionCall call;
  call.queries = Ragged(f.ints("lengths"));
  call.memory = Ragged(f.ints("memory_lengths"));
  const Tensor q = f["q"].set_requires_grad(true), memory = f["memory"].set_requires_grad(true);
  Context ctx;
  const Tensor out = attention->forward(q, memory, call, ctx);
  testing::expect_close(out, f["out"], 1e-5, "out");
  out.backward(f["probe"]);
  testing::expect_close(q.grad(), f["grad_q"], 1e-5, "d_q");
  testing::expect_close(memory.grad(), f["grad_memory"], 1e-5, "d_memory");
  testing::expect_gradients(*attention, f, 1e-5);
}

// softmax(relu(x A + a) B + b) V by its formula.
TEST(Attention, SynthesizerIsItsFormula) {
  Rng rng(9);
  AttentionConfig config;
  config.query = 4;
  config.heads = 2;
  config.self = true;
  config.block = 6;
  const auto attention = Mechanism("synthesizer").make(config, rng);
  std::map<std::string, Tensor> p;
  for (const NamedParameter& named : parameters(*attention)) p[named.name] = named.value.detach();
  p["score"].copy_from(Tensor::randn({6, 4}, rng));
  p["score_bias"].copy_from(Tensor::randn({6, 2}, rng));
  const Tensor x = Tensor::randn({3, 4}, rng);
  AttentionCall call;
  call.queries = call.memory = Ragged{3};
  call.causal = true;
  Context ctx;
  const Tensor got = attention->forward(x, x, call, ctx);

  const Tensor hidden = linear(x, p["hidden.weight"], p["hidden.bias"], Act::relu);
  const Tensor values = linear(x, p["value.weight"], p["value.bias"]);
  Tensor joined = Tensor::zeros({3, 4});
  for (int64_t h = 0; h < 2; ++h) {
    for (int64_t i = 0; i < 3; ++i) {
      double weights[3], total = 0;
      for (int64_t j = 0; j <= i; ++j) {
        double z = p["score_bias"].at({j, h});
        for (int64_t d = 0; d < 2; ++d) z += hidden.at({i, 2 * h + d}) * p["score"].at({j, 2 * h + d});
        total += weights[j] = std::exp(z);
      }
      for (int64_t j = 0; j <= i; ++j) {
        for (int64_t d = 0; d < 2; ++d) {
          joined.f32()[i * 4 + 2 * h + d] += static_cast<float>(weights[j] / total * values.at({j, 2 * h + d}));
        }
      }
    }
  }
  testing::expect_close(got, linear(joined, p["output.weight"], p["output.bias"]), 1e-5, "synthesizer");
  call.queries = call.memory = Ragged{7};
  const Tensor longer = Tensor::zeros({7, 4});
  EXPECT_THROW(attention->forward(longer, longer, call, ctx), ShapeError);
}

TEST(Attention, WrongSettingsSaySo) {
  Rng rng(1);
  const auto message = [&](const std::string& name, AttentionConfig config) -> std::string {
    config.query = config.query == 0 ? 6 : config.query;
    config.memory = config.memory == 0 ? 6 : config.memory;
    try {
      Mechanism(name).make(config, rng);
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "";
  };
  AttentionConfig config;
  config.heads = 4;
  EXPECT_EQ(message("multi-head", config), "attention: key width 6 does not divide into 4 heads");
  config.heads = 3;
  config.kv_heads = 2;
  EXPECT_EQ(message("multi-head", config), "attention: 3 heads cannot share 2 key heads; one must divide the other");
  EXPECT_EQ(message("none",
                    [] {
                      AttentionConfig c;
                      c.self = true;
                      return c;
                    }()),
            "attention 'none' cannot be used as self-attention");
  EXPECT_THROW(parse<Normaliser>("maxout"), ConfigError);
  EXPECT_EQ(parse<Normaliser>("entmax15"), Normaliser::entmax15);
}

}  // namespace
}  // namespace qkv
