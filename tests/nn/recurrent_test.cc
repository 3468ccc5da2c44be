// LSTM and GRU against PyTorch, against central differences, and ragged batches against one sequence at a time.
#include "qkv/nn/recurrent.h"

#include <gtest/gtest.h>

#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "support/fixture.h"

namespace qkv {
namespace {

using testing::Fixture;

Tensor rows(const Tensor& x, int64_t begin, int64_t end) { return contiguous(slice(x, 0, begin, end)); }

// All last states in PyTorch's order: layer after layer, forward before backward.
std::vector<RecurrentState> states_of(const RecurrentOutput& out) {
  std::vector<RecurrentState> all;
  for (size_t l = 0; l < out.forward.size(); ++l) {
    all.push_back(out.forward[l]);
    if (!out.backward.empty()) all.push_back(out.backward[l]);
  }
  return all;
}

Tensor stacked(const std::vector<RecurrentState>& states, bool cell) {
  std::vector<Tensor> parts;
  for (const RecurrentState& s : states) {
    const Tensor& t = cell ? s.c : s.h;
    parts.push_back(reshape(t, {1, t.dim(0), t.dim(1)}));
  }
  return concat(parts, 0);
}

void expect_like_pytorch(const std::string& name, CellKind cell, bool bidirectional) {
  const Fixture f(name);
  Rng rng(7);
  Recurrent rnn({cell, 3, 4, 2, bidirectional, 0}, rng);
  testing::load_parameters(rnn, f);
  Context ctx;
  const Tensor x = f["x"].set_requires_grad(true);
  const RecurrentOutput out = rnn.forward(x, Ragged(f.ints("lengths")), ctx);
  const std::vector<RecurrentState> states = states_of(out);
  const Tensor h = stacked(states, false);
  testing::expect_close(out.out, f["out"], 1e-5, "out");
  testing::expect_close(h, f["last_h"], 1e-5, "last h");
  Tensor loss = sum(out.out * f["probe"]) + sum(h * f["probe_h"]);
  if (cell == CellKind::lstm) {
    const Tensor c = stacked(states, true);
    testing::expect_close(c, f["last_c"], 1e-5, "last c");
    loss = loss + sum(c * f["probe_c"]);
  }
  loss.backward();
  testing::expect_close(x.grad(), f["grad_x"], 1e-5, "d_x");
  testing::expect_gradients(rnn, f, 1e-5);
}

TEST(Recurrent, LstmBothWaysIsPyTorchs) { expect_like_pytorch("nn/lstm.txt", CellKind::lstm, true); }
TEST(Recurrent, LstmOneWayIsPyTorchs) { expect_like_pytorch("nn/lstm_one_way.txt", CellKind::lstm, false); }
TEST(Recurrent, GruBothWaysIsPyTorchs) { expect_like_pytorch("nn/gru.txt", CellKind::gru, true); }

class EachCell : public ::testing::TestWithParam<CellKind> {};
INSTANTIATE_TEST_SUITE_P(Recurrent, EachCell, ::testing::Values(CellKind::lstm, CellKind::gru));

TEST_P(EachCell, GradientsOfInputStatesAndWeights) {
  Rng rng(3);
  const Ragged batch{2, 0, 3, 1};
  for (bool reverse : {false, true}) {
    const RecurrentWeights w = recurrent_weights(GetParam(), 3, 2, rng);
    const Tensor x = Tensor::randn({6, 3}, rng), h = Tensor::randn({4, 2}, rng), c = Tensor::randn({4, 2}, rng);
    const GradCheckResult result = grad_check(
        [&](const std::vector<Tensor>& in) {
          const RecurrentResult r = recurrent(GetParam(), in[0], batch, {in[1], in[2], in[3], in[4]},
                                              {in[5], GetParam() == CellKind::lstm ? in[6] : Tensor()}, reverse);
          std::vector<Tensor> outs{reshape(r.out, {-1}), reshape(r.state.h, {-1})};
          if (r.state.c.defined()) outs.push_back(reshape(r.state.c, {-1}));
          return concat(outs, 0);
        },
        {x, w.w_ih, w.w_hh, w.b_ih, w.b_hh, h, c});
    EXPECT_TRUE(result.ok) << result.message;
  }
}

// A small table is projected instead of the rows, a large one looked up; both are the layer over the looked-up rows.
TEST_P(EachCell, RowsOfATableEqualTheRowsThemselves) {
  Rng rng(4);
  const Ragged batch{5, 0, 7, 2};
  const std::vector<int64_t> ids{0, 2, 1, 1, 2, 0, 0, 1, 2, 2, 1, 0, 2, 2};
  for (const int64_t entries : {3, 20}) {
    for (const bool reverse : {false, true}) {
      const RecurrentWeights w = recurrent_weights(GetParam(), 3, 4, rng);
      const Tensor table = parameter(Tensor::randn({entries, 3}, rng)), probe = Tensor::randn({14, 4}, rng);
      const auto gradients = [&](const RecurrentInput& x) {
        for (const Tensor& t : {table, w.w_ih, w.w_hh, w.b_ih, w.b_hh}) Tensor(t).zero_grad();
        const RecurrentResult r = recurrent(GetParam(), x, batch, w, {}, reverse);
        (sum(r.out * probe) + sum(r.state.h)).backward();
        std::vector<Tensor> all{r.out, r.state.h};
        for (const Tensor& t : {table, w.w_ih, w.w_hh, w.b_ih, w.b_hh}) all.push_back(t.grad().clone());
        return all;
      };
      const std::vector<Tensor> named = gradients({table, ids}), looked_up = gradients(embedding(table, ids));
      for (size_t i = 0; i < named.size(); ++i) {
        testing::expect_close(named[i], looked_up[i], 1e-5, std::to_string(entries) + ": " + std::to_string(i));
      }
    }
  }
}

TEST_P(EachCell, GradientsOfATable) {
  Rng rng(3);
  const Ragged batch{5, 0, 6, 1};
  const std::vector<int64_t> ids{0, 1, 1, 2, 0, 2, 2, 1, 0, 0, 1, 2};
  const RecurrentWeights w = recurrent_weights(GetParam(), 3, 2, rng);
  const GradCheckResult result = grad_check(
      [&](const std::vector<Tensor>& in) {
        return recurrent(GetParam(), {in[0], ids}, batch, {in[1], in[2], in[3], in[4]}).out;
      },
      {Tensor::randn({3, 3}, rng), w.w_ih, w.w_hh, w.b_ih, w.b_hh});
  EXPECT_TRUE(result.ok) << result.message;
}

TEST_P(EachCell, RaggedEqualsOneByOne) {
  Rng rng(5);
  const Recurrent rnn({GetParam(), 3, 6, 2, true, 0}, rng);
  const std::vector<int64_t> lengths{4, 1, 7, 7, 2};
  const Ragged batch(lengths);
  const Tensor x = Tensor::randn({batch.rows(), 3}, rng);
  Context ctx;
  const RecurrentOutput together = rnn.forward(x, batch, ctx);
  for (int64_t b = 0; b < batch.sequences(); ++b) {
    const int64_t begin = batch.begin(b), end = batch.begin(b + 1);
    const RecurrentOutput alone = rnn.forward(rows(x, begin, end), Ragged{end - begin}, ctx);
    EXPECT_LE(testing::distance(alone.out, rows(together.out, begin, end)), 1e-6) << "sequence " << b;
    for (size_t l = 0; l < 2; ++l) {
      EXPECT_LE(testing::distance(alone.forward[l].h, rows(together.forward[l].h, b, b + 1)), 1e-6);
      EXPECT_LE(testing::distance(alone.backward[l].h, rows(together.backward[l].h, b, b + 1)), 1e-6);
    }
  }
}

TEST_P(EachCell, StepByStepEqualsWhole) {
  Rng rng(6);
  const Recurrent rnn({GetParam(), 3, 5, 2, false, 0}, rng);
  const Tensor x = Tensor::randn({4 * 2, 3}, rng);  // two sequences of four
  Context ctx;
  const RecurrentOutput whole = rnn.forward(x, Ragged::equal(2, 4), ctx);
  std::vector<RecurrentState> state;
  for (int64_t t = 0; t < 4; ++t) {
    const std::vector<int64_t> now{t, 4 + t};
    const RecurrentOutput step = rnn.forward(gather_rows(x, now), Ragged::equal(2, 1), ctx, state);
    state = step.forward;
    EXPECT_LE(testing::distance(step.out, gather_rows(whole.out, now)), 1e-6) << "step " << t;
  }
  EXPECT_LE(testing::distance(state[1].h, whole.forward[1].h), 1e-6);
}

TEST_P(EachCell, SameBitsForAnyNumberOfThreads) {
  Rng rng(8);
  Recurrent rnn({GetParam(), 24, 40, 2, true, 0.2}, rng);
  const Ragged batch{9, 3, 5, 9, 1, 7};
  const Tensor x = Tensor::randn({batch.rows(), 24}, rng);
  const auto run = [&](int threads) {
    set_num_threads(threads);
    for (const NamedParameter& p : parameters(rnn)) Tensor(p.value).zero_grad();
    Context ctx(11, 1);
    Rng probe(2);
    const Tensor out = rnn.forward(x, batch, ctx).out;
    out.backward(Tensor::randn(out.shape(), probe));
    std::vector<Tensor> all{out};
    for (const NamedParameter& p : parameters(rnn)) all.push_back(p.value.grad());
    return all;
  };
  const int before = num_threads();
  const std::vector<Tensor> one = run(1), two = run(2);
  set_num_threads(before);
  for (size_t i = 0; i < one.size(); ++i) testing::expect_same_bits(one[i], two[i], std::to_string(i));
}

TEST(Recurrent, ErrorsNameTheOpAndTheShapes) {
  Rng rng(1);
  const RecurrentWeights w = recurrent_weights(CellKind::gru, 3, 2, rng);
  const auto message = [&](const RecurrentInput& x, const Ragged& batch, const RecurrentState& state) -> std::string {
    try {
      recurrent(CellKind::gru, x, batch, w, state);
    } catch (const ShapeError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(message(Tensor::zeros({4, 5}), {4}, {}),
            "[gru] x=[4,5]; expected [4,3] for a batch of 4 rows and w_ih=[6,3]");
  EXPECT_EQ(message(Tensor::zeros({4, 3}), {4}, {Tensor::zeros({2, 2}), {}}), "[gru] h=[2,2]; expected [1,2]");
  EXPECT_EQ(message({Tensor::zeros({1, 3}), {0, 0, 0}}, {4}, {}), "[gru] 3 ids for a batch of 4 rows");
  EXPECT_EQ(message({Tensor::zeros({1, 3}), {0, 0, 1, 0}}, {4}, {}), "[gru] index 1 outside a table of shape [1,3]");
  EXPECT_EQ(message({Tensor::zeros({2, 3}), {0, 2, 1, 0}}, {4}, {}),
            "[embedding] index 2 outside a table of shape [2,3]");
  EXPECT_THROW(Recurrent({CellKind::lstm, 3, 0, 1, false, 0}, rng), ConfigError);
  EXPECT_THROW(Recurrent({CellKind::lstm, 3, 2, 0, false, 0}, rng), ConfigError);
}

TEST(Ragged, TimeOrderHoldsNoPadding) {
  const Ragged batch{2, 0, 4, 1, 4};
  const TimeOrder& time = batch.time();
  EXPECT_EQ(batch.rows(), 11);
  EXPECT_EQ(time.order, (std::vector<int64_t>{2, 4, 0, 3, 1}));
  EXPECT_EQ(time.begin, (std::vector<int64_t>{0, 4, 7, 9, 11}));  // 4 + 3 + 2 + 2 rows: 11, not 5·4
  EXPECT_EQ(time.forward_rows, (std::vector<int64_t>{2, 7, 0, 6, 3, 8, 1, 4, 9, 5, 10}));
  EXPECT_EQ(time.backward_rows, (std::vector<int64_t>{5, 10, 1, 6, 4, 9, 0, 3, 8, 2, 7}));
  EXPECT_EQ(batch.positions(), (std::vector<int64_t>{0, 1, 0, 1, 2, 3, 0, 0, 1, 2, 3}));
  EXPECT_THROW(Ragged({1, -2}), ShapeError);
}

}  // namespace
}  // namespace qkv
