// The attending decoder as one op: against the same steps written with small ops, and against central differences.
#include "qkv/ops/recurrent_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "qkv/nn/attention.h"
#include "qkv/nn/recurrent.h"
#include "support/fixture.h"

namespace qkv {
namespace {

struct Case {
  std::string mechanism;
  CellKind cell = CellKind::gru;
  int64_t layers = 1;
};

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.mechanism + (info.param.cell == CellKind::gru ? "Gru" : "Lstm");
  name += std::to_string(info.param.layers);
  name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
  return name;
}

// A decoder and what it decodes, small and ragged.
struct Scene {
  explicit Scene(const Case& c, Rng rng = Rng(4)) : batch{2, 4, 1}, memory_rows{3, 1, 2} {
    AttentionConfig config;
    config.query = config.memory = kHidden;
    config.key = 2;
    config.heads = c.mechanism == "multi-head" ? 2 : 1;
    config.key = c.mechanism == "multi-head" ? 4 : 2;
    attention = Mechanism(c.mechanism).make(config, rng);
    cells.kind = c.cell;
    for (int64_t l = 0; l < c.layers; ++l) {
      cells.layers.push_back(recurrent_weights(c.cell, l == 0 ? kInput + attention->width() : kHidden, kHidden, rng));
      initial.push_back({Tensor::randn({3, kHidden}, rng), Tensor::randn({3, kHidden}, rng)});
      if (c.cell == CellKind::gru) initial.back().c = Tensor();
    }
    x = Tensor::randn({batch.rows(), kInput}, rng);
    memory = Tensor::randn({memory_rows.rows(), kHidden}, rng);
  }
  DecoderResult run() {
    Context ctx;
    return recurrent_decoder(x, batch, cells, attention->plan(memory, memory_rows, ctx), initial);
  }
  // All trained and given values, in one order.
  void visit(Visitor& see) {
    see("x", x);
    see("memory", memory);
    see("attention", attention);
    for (RecurrentWeights& w : cells.layers) visit_weights(see, "", "", w);
    for (RecurrentState& s : initial) {
      see("h", s.h);
      see("c", s.c);
    }
  }

  static constexpr int64_t kInput = 2, kHidden = 4;
  Ragged batch, memory_rows;
  std::unique_ptr<Attention> attention;
  DecoderCells cells;
  std::vector<RecurrentState> initial;
  Tensor x, memory;
};

Tensor everything(const DecoderResult& r) {
  std::vector<Tensor> parts{reshape(r.out, {-1}), reshape(r.context, {-1})};
  for (const RecurrentState& s : r.state) {
    parts.push_back(reshape(s.h, {-1}));
    if (s.c.defined()) parts.push_back(reshape(s.c, {-1}));
  }
  return concat(parts, 0);
}

class Decoder : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Mechanisms, Decoder,
                         ::testing::Values(Case{"dot"}, Case{"scaled-dot"}, Case{"general", CellKind::lstm},
                                           Case{"additive"}, Case{"additive", CellKind::lstm, 2}, Case{"mean"},
                                           Case{"multi-head"}, Case{"scaled-dot", CellKind::gru, 3}),
                         case_name);

TEST_P(Decoder, Gradients) {
  Scene scene(GetParam());
  const GradCheckResult result =
      testing::check_module(scene, {}, [&](const std::vector<Tensor>&) { return everything(scene.run()); });
  EXPECT_TRUE(result.ok) << result.message;
}

TEST_P(Decoder, GradientsWithDropoutBetweenLayers) {
  Scene scene(GetParam());
  scene.cells.dropout = 0.4;
  scene.cells.dropout_seed = 99;
  const GradCheckResult result =
      testing::check_module(scene, {}, [&](const std::vector<Tensor>&) { return everything(scene.run()); });
  EXPECT_TRUE(result.ok) << result.message;
}

// The definition, one sequence and one step at a time.
TEST_P(Decoder, EqualsItsDefinition) {
  Scene scene(GetParam());
  Context ctx;
  const DecoderResult whole = scene.run();
  for (int64_t b = 0; b < scene.batch.sequences(); ++b) {
    const Ragged one{1}, memory_rows{scene.memory_rows.length(b)};
    const Tensor memory =
        contiguous(slice(scene.memory, 0, scene.memory_rows.begin(b), scene.memory_rows.begin(b + 1)));
    std::vector<RecurrentState> state;
    for (const RecurrentState& s : scene.initial) {
      state.push_back(
          {contiguous(slice(s.h, 0, b, b + 1)), s.c.defined() ? contiguous(slice(s.c, 0, b, b + 1)) : Tensor()});
    }
    for (int64_t t = 0; t < scene.batch.length(b); ++t) {
      const int64_t row = scene.batch.begin(b) + t;
      AttentionCall call;
      call.queries = one;
      call.memory = memory_rows;
      const Tensor context = scene.attention->forward(state.back().h, memory, call, ctx);
      Tensor in = concat({slice(scene.x, 0, row, row + 1), context}, 1);
      for (size_t l = 0; l < state.size(); ++l) {
        const RecurrentResult r = recurrent(scene.cells.kind, in, one, scene.cells.layers[l], state[l]);
        state[l] = r.state;
        in = r.out;
      }
      EXPECT_LE(testing::distance(in, contiguous(slice(whole.out, 0, row, row + 1))), 1e-5);
      EXPECT_LE(testing::distance(context, contiguous(slice(whole.context, 0, row, row + 1))), 1e-5);
    }
    EXPECT_LE(testing::distance(state.back().h, contiguous(slice(whole.state.back().h, 0, b, b + 1))), 1e-5);
  }
}

TEST(DecoderOp, SameBitsForAnyNumberOfThreads) {
  const auto run = [&](int threads) {
    set_num_threads(threads);
    Scene scene({"scaled-dot", CellKind::gru, 2});
    struct Mark final : Visitor {
      void see(const std::string&, Tensor& t) override { t.set_requires_grad(true); }
    } mark;
    scene.visit(mark);
    const Tensor out = everything(scene.run());
    Rng probe(3);
    out.backward(Tensor::randn(out.shape(), probe));
    std::vector<Tensor> all{out};
    for (const NamedParameter& p : parameters(scene)) all.push_back(p.value.grad());
    return all;
  };
  const int before = num_threads();
  const std::vector<Tensor> one = run(1), two = run(2);
  set_num_threads(before);
  for (size_t i = 0; i < one.size(); ++i) testing::expect_same_bits(one[i], two[i], std::to_string(i));
}

TEST(DecoderOp, ErrorsNameTheShapes) {
  Scene scene({"dot"});
  scene.x = Tensor::zeros({7, 3});
  try {
    scene.run();
    FAIL() << "no error";
  } catch (const ShapeError& e) {
    EXPECT_STREQ(e.what(),
                 "[recurrent_decoder] x=[7,3] with a context of width 4; expected 7 rows and widths that add up to "
                 "w_ih.dim(1), w_ih=[12,6]");
  }
}

}  // namespace
}  // namespace qkv
