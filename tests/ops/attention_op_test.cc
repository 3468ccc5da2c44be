// The attention op: shapes of d2l users, gradients through the recording, packing, errors.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "qkv/base/error.h"
#include "qkv/core/grad_check.h"
#include "qkv/ops/attention.h"
#include "qkv/ops/attention_pass.h"
#include "qkv/ops/ops.h"

namespace qkv {
namespace {

Tensor random(const Shape& shape, uint64_t seed, DType dtype = DType::f32) {
  Rng rng(seed);
  return Tensor::randn(shape, rng, 1.0, dtype);
}

// softmax(q kᵀ·scale + bias) v from basic ops.
Tensor composed(const Tensor& q, const Tensor& k, const Tensor& v, double scale, const Tensor& bias = {}) {
  Tensor z = affine(matmul(q, transpose(k, -1, -2)), scale);
  if (bias.defined()) z = z + bias;
  return matmul(softmax(z), v);
}

void expect_close(const Tensor& a, const Tensor& b, double tolerance) {
  ASSERT_EQ(a.shape(), b.shape());
  const auto x = a.to_doubles(), y = b.to_doubles();
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], tolerance) << "element " << i;
}

TEST(AttentionOp, EqualsTheComposedOps) {
  const Tensor q = random({2, 3, 5, 8}, 1), k = random({2, 3, 7, 8}, 2), v = random({2, 3, 7, 6}, 3);
  expect_close(attention(q, k, v), composed(q, k, v, 1 / std::sqrt(8.0)), 1e-5);
  const Tensor bias = random({3, 1, 7}, 4);
  expect_close(attention(q, k, v, {.scale = 0.7, .bias = bias}), composed(q, k, v, 0.7, bias), 1e-5);
}

TEST(AttentionOp, WithoutHeadsAndD2lShapes) {
  const Tensor q = random({2, 1, 2}, 1), k = Tensor::full({2, 10, 2}, 1.0), v = random({2, 10, 4}, 2);
  const Tensor out = attention(q, k, v, {.key_lens = {2, 6}});
  EXPECT_EQ(out.shape(), (Shape{2, 1, 4}));
  // Equal keys: the mean of the first len values.
  expect_close(slice(out, 0, 1, 2), mean(slice(slice(v, 0, 1, 2), 1, 0, 6), 1, true), 1e-6);
}

TEST(AttentionOp, StridedInputsNeedNoCopyAndGiveTheSame) {
  const Tensor x = random({2, 6, 3 * 12}, 5);  // [B, L, 3·C], three heads of four
  const auto head_view = [&](int64_t part) {
    return transpose(reshape(slice(x, 2, part * 12, part * 12 + 12), {2, 6, 3, 4}), 1, 2);  // [B, H, L, D]
  };
  const Tensor out = attention(head_view(0), head_view(1), head_view(2), {.causal = true});
  const Tensor dense_out =
      attention(contiguous(head_view(0)), contiguous(head_view(1)), contiguous(head_view(2)), {.causal = true});
  EXPECT_EQ(out.to_vector(), dense_out.to_vector());
}

TEST(AttentionOp, GradientsThroughEveryDifferentiableInput) {
  struct Case {
    const char* name;
    Shape q, k, v;
    std::function<ScoreRule(const std::vector<Tensor>&)> rule;
    std::vector<Shape> extra;
  };
  const std::vector<Case> cases = {
      {"plain", {1, 2, 3, 4}, {1, 2, 5, 4}, {1, 2, 5, 3}, [](const auto&) { return ScoreRule{}; }, {}},
      {"grouped causal",
       {2, 4, 3, 4},
       {2, 2, 3, 4},
       {2, 2, 3, 4},
       [](const auto&) { return ScoreRule{.causal = true}; },
       {}},
      {"bias softcap",
       {1, 2, 3, 4},
       {1, 2, 5, 4},
       {1, 2, 5, 3},
       [](const auto& x) { return ScoreRule{.softcap = 2, .bias = x[3]}; },
       {{2, 1, 5}}},
      {"additive",
       {2, 3, 4},
       {2, 5, 4},
       {2, 5, 3},
       [](const auto& x) {
         return ScoreRule{.key_lens = {3, 0}, .additive = x[3]};
       },
       {{4}}},
      {"sparsemax",
       {1, 2, 3, 4},
       {1, 2, 5, 4},
       {1, 2, 5, 3},
       [](const auto&) { return ScoreRule{.normaliser = Normaliser::sparsemax}; },
       {}},
      {"entmax15 window",
       {1, 2, 6, 4},
       {1, 2, 6, 4},
       {1, 2, 6, 3},
       [](const auto&) { return ScoreRule{.window_left = 2, .window_right = 1, .normaliser = Normaliser::entmax15}; },
       {}},
      {"dropout",
       {1, 2, 6, 4},
       {1, 2, 6, 4},
       {1, 2, 6, 3},
       [](const auto&) { return ScoreRule{.dropout = 0.4, .dropout_seed = 3}; },
       {}},
      {"packed",
       {7, 2, 4},
       {9, 1, 4},
       {9, 1, 3},
       [](const auto&) {
         return ScoreRule{.causal = true, .q_offsets = {0, 3, 3, 7}, .k_offsets = {0, 4, 5, 9}};
       },
       {}},
  };
  for (const Case& c : cases) {
    std::vector<Tensor> inputs = {random(c.q, 1), random(c.k, 2), random(c.v, 3)};
    for (const Shape& s : c.extra) inputs.push_back(random(s, 4));
    const auto r =
        grad_check([&](const std::vector<Tensor>& x) { return attention(x[0], x[1], x[2], c.rule(x)); }, inputs);
    EXPECT_TRUE(r.ok) << c.name << ": " << r.message;
    EXPECT_LT(r.worst, 1e-6) << c.name;
  }
}

TEST(AttentionOp, HardAttentionReachesTheValuesOnly) {
  Tensor q = random({1, 1, 2, 4}, 1).set_requires_grad(true), k = random({1, 1, 5, 4}, 2).set_requires_grad(true);
  Tensor v = random({1, 1, 5, 3}, 3).set_requires_grad(true);
  const Tensor out = attention(q, k, v, {.normaliser = Normaliser::hard});
  sum(out).backward();
  for (float g : q.grad().to_vector()) EXPECT_EQ(g, 0);
  for (float g : k.grad().to_vector()) EXPECT_EQ(g, 0);
  EXPECT_NEAR(sum(v.grad()).item(), 2 * 3, 1e-5);
}

TEST(AttentionOp, PackedEqualsOneByOne) {
  const Tensor q = random({7, 2, 4}, 1), k = random({9, 2, 4}, 2), v = random({9, 2, 3}, 3);
  const Tensor out = attention(q, k, v, {.q_offsets = {0, 3, 7}, .k_offsets = {0, 4, 9}});
  const auto one = [&](int64_t q0, int64_t q1, int64_t k0, int64_t k1) {
    const auto heads_first = [](const Tensor& t) { return reshape(transpose(t, 0, 1), {1, 2, t.dim(0), t.dim(2)}); };
    const Tensor o =
        attention(heads_first(slice(q, 0, q0, q1)), heads_first(slice(k, 0, k0, k1)), heads_first(slice(v, 0, k0, k1)));
    return contiguous(transpose(reshape(o, {2, q1 - q0, 3}), 0, 1));
  };
  EXPECT_EQ(slice(out, 0, 0, 3).to_vector(), one(0, 3, 0, 4).to_vector());
  EXPECT_EQ(slice(out, 0, 3, 7).to_vector(), one(3, 7, 4, 9).to_vector());
}

TEST(AttentionOp, FusedSelfAttentionEqualsTheParts) {
  const int64_t H = 4, Hkv = 2, D = 3, T = 9;
  const ScoreRule rule{.causal = true, .q_offsets = {0, 4, 9}, .k_offsets = {0, 4, 9}};
  Tensor fused = random({T, (H + 2 * Hkv) * D}, 1).set_requires_grad(true);
  Tensor apart = fused.detach().clone().set_requires_grad(true);
  const auto part = [&](int64_t first, int64_t count) {
    return reshape(slice(apart, 1, first * D, (first + count) * D), {T, count, D});
  };
  const Tensor a = self_attention(fused, H, Hkv, rule);
  const Tensor b = reshape(attention(part(0, H), part(H, Hkv), part(H + Hkv, Hkv), rule), {T, H * D});
  EXPECT_EQ(a.to_vector(), b.to_vector());
  const Tensor probe = random(a.shape(), 7);
  a.backward(probe);
  b.backward(probe);
  EXPECT_EQ(fused.grad().to_vector(), apart.grad().to_vector());
  const auto r = grad_check([&](const std::vector<Tensor>& x) { return self_attention(x[0], H, Hkv, rule); },
                            {random({T, (H + 2 * Hkv) * D}, 2)});
  EXPECT_TRUE(r.ok) << r.message;
}

TEST(AttentionOp, EmptyRowsAndNanBehindAMask) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Tensor q = random({1, 1, 3, 4}, 1).set_requires_grad(true), k = random({1, 1, 5, 4}, 2), v = random({1, 1, 5, 2}, 3);
  for (int i = 0; i < 4; ++i) k.f32()[4 * 4 + i] = nan;
  for (int i = 0; i < 2; ++i) v.f32()[4 * 2 + i] = std::numeric_limits<float>::infinity();
  k.set_requires_grad(true);
  v.set_requires_grad(true);
  const Tensor out = attention(q, k, v, {.key_lens = {4, 0, 2}});  // one length per row; row 1 sees nothing
  sum(mul(out, out)).backward();
  for (const Tensor& t : {out, q.grad(), k.grad(), v.grad()}) {
    for (float x : t.to_vector()) EXPECT_TRUE(std::isfinite(x));
  }
  for (int64_t d = 0; d < 2; ++d) EXPECT_EQ(out.at({0, 0, 1, d}), 0);
  for (int64_t d = 0; d < 4; ++d) EXPECT_EQ(q.grad().at({0, 0, 1, d}), 0);
}

TEST(AttentionOp, ScoresAndStatisticsOnRequest) {
  const Tensor q = random({1, 2, 3, 4}, 1), k = random({1, 2, 5, 4}, 2);
  const ScoreRule rule{.softcap = 1.5, .causal = true, .offset = 1};
  const Tensor raw = attention_score_array(q, k, rule, ScoreStage::raw);
  expect_close(raw, affine(matmul(q, transpose(k, -1, -2)), 0.5), 1e-5);
  const Tensor capped = attention_score_array(q, k, rule, ScoreStage::capped);
  EXPECT_NEAR(capped.at({0, 1, 2, 4}), 1.5 * std::tanh(raw.at({0, 1, 2, 4}) / 1.5), 1e-5);
  EXPECT_EQ(attention_score_array(q, k, rule, ScoreStage::biased).at({0, 0, 0, 2}), -INFINITY);
  const Tensor p = attention_score_array(q, k, rule);
  const AttentionStatistics s = attention_statistics(q, k, rule);
  EXPECT_EQ(p.at({0, 0, 0, 2}), 0);
  for (int64_t i = 0; i < 3; ++i) {
    double entropy = 0, largest = 0, distance = 0;
    for (int64_t j = 0; j < 5; ++j) {
      const double w = p.at({0, 1, i, j});
      if (w > 0) entropy -= w * std::log(w);
      largest = std::max(largest, w);
      distance += w * std::abs(static_cast<double>(i + 1 - j));
    }
    EXPECT_NEAR(s.entropy.at({0, 1, i}), entropy, 1e-5);
    EXPECT_NEAR(s.max_weight.at({0, 1, i}), largest, 1e-6);
    EXPECT_NEAR(s.mean_distance.at({0, 1, i}), distance, 1e-5);
    EXPECT_NEAR(p.at({0, 1, i, static_cast<int64_t>(s.argmax.at({0, 1, i}))}), largest, 1e-6);
    EXPECT_NEAR(std::exp(capped.at({0, 1, i, 0}) - s.lse.at({0, 1, i})), p.at({0, 1, i, 0}), 1e-5);
  }
}

TEST(AttentionOp, AMaskThatOnlyPadsIsTakenAsLengths) {
  const Tensor q = random({2, 2, 6, 4}, 1), k = random({2, 2, 5, 4}, 2), v = random({2, 2, 5, 4}, 3);
  const auto lengths = [&](std::vector<uint8_t> values, const Shape& shape) {
    const AttentionPass pass(q, k, v, {.mask = bool_mask(std::move(values), shape)});
    EXPECT_EQ(pass.rule.mask.defined(), pass.rule.key_lens.empty());
    return pass.rule.key_lens;
  };
  using Lengths = std::vector<int64_t>;
  EXPECT_EQ(lengths({1, 1, 1, 0, 0, 1, 1, 1, 1, 1}, {2, 1, 1, 5}), (Lengths{3, 5}));
  EXPECT_EQ(lengths({0, 0, 0, 0, 0, 1, 0, 0, 0, 0}, {2, 1, 1, 5}), (Lengths{0, 1}));
  EXPECT_EQ(lengths({1, 1, 1, 0, 0}, {5}), (Lengths{3, 3}));
  EXPECT_EQ(lengths({1, 1, 0}, {1, 1, 3}), (Lengths{2, 2}));  // keys beyond a shorter mask are hidden
  EXPECT_EQ(lengths({0, 1, 1, 1, 1}, {5}), Lengths{});
  EXPECT_EQ(lengths({1, 1, 0, 0, 0, 1, 0, 1, 0, 0}, {2, 1, 1, 5}), Lengths{});
  EXPECT_EQ(lengths({1}, {1}), Lengths{});                                   // one for all keys
  EXPECT_EQ(lengths({1, 1, 1, 0, 0, 1, 1, 1, 1, 1}, {2, 1, 5}), Lengths{});  // one for each head

  // The same written out for every query stays a mask, and gives the same bits.
  std::vector<uint8_t> padding = {1, 1, 1, 0, 0, 1, 1, 1, 1, 1}, wide;
  for (int64_t row = 0; row < 2 * 6; ++row) {
    const auto first = padding.begin() + row / 6 * 5;
    wide.insert(wide.end(), first, first + 5);
  }
  const auto both = [&](const ScoreRule& rule) {
    std::vector<Tensor> leaves;
    for (const Tensor& t : {q, k, v}) leaves.push_back(t.clone().set_requires_grad(true));
    const Tensor out = attention(leaves[0], leaves[1], leaves[2], rule);
    out.backward(random(out.shape(), 4));
    return std::vector{out.to_vector(), leaves[0].grad().to_vector(), leaves[1].grad().to_vector(),
                       leaves[2].grad().to_vector()};
  };
  EXPECT_EQ(both({.mask = bool_mask(padding, {2, 1, 1, 5})}), both({.mask = bool_mask(wide, {2, 1, 6, 5})}));
}

TEST(AttentionOp, CacheEqualsRecomputing) {
  const Tensor q = random({1, 2, 6, 4}, 1), k = random({1, 2, 6, 4}, 2), v = random({1, 2, 6, 4}, 3);
  const Tensor all = attention(q, k, v, {.causal = true});
  const Tensor past_k = slice(k, 2, 0, 4), past_v = slice(v, 2, 0, 4);
  const Tensor later = attention(slice(q, 2, 4, 6), extend_cache(past_k, slice(k, 2, 4, 6)),
                                 extend_cache(past_v, slice(v, 2, 4, 6)), {.causal = true, .offset = 4});
  expect_close(later, slice(all, 2, 4, 6), 1e-6);
}

TEST(AttentionOp, ErrorsSayWhatIsWrong) {
  const auto message = [](const std::function<void()>& fn) -> std::string {
    try {
      fn();
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  const Tensor q = Tensor::zeros({2, 4, 3, 8}), k = Tensor::zeros({2, 4, 5, 6}), v = Tensor::zeros({2, 4, 5, 8});
  EXPECT_EQ(message([&] { attention(q, k, v); }),
            "[attention] head sizes differ: q=[2,4,3,8], k=[2,4,5,6], v=[2,4,5,8]; expected q.dim(-1) == k.dim(-1)");
  EXPECT_EQ(message([&] {
              attention(q, Tensor::zeros({2, 3, 5, 8}), Tensor::zeros({2, 3, 5, 8}));
            }),
            "[attention] query heads must be a multiple of key heads: q=[2,4,3,8], k=[2,3,5,8], v=[2,3,5,8]");
  const Tensor k8 = Tensor::zeros({2, 4, 5, 8});
  EXPECT_EQ(message([&] {
              attention(q, k8, v, {.mask = bool_mask(std::vector<uint8_t>(8), {2, 4})});
            }),
            "[attention] mask=[2,4] does not broadcast to [2,4,3,5]");
  EXPECT_EQ(message([&] {
              attention(q, k8, v, {.key_lens = {1, 2, 3}});
            }),
            "[attention] 3 valid lengths for B=2, Lq=3; expected B or B·Lq");
  for (const int64_t length : {-1, 6}) {
    EXPECT_EQ(message([&] {
                attention(q, k8, v, {.key_lens = {5, length}});
              }),
              "[attention] valid length " + std::to_string(length) + " outside [0, 5]");
  }
  EXPECT_EQ(message([&] { attention(q, k8, v, {.dropout = 1}); }), "[attention] dropout must be in [0, 1)");
}

}  // namespace
}  // namespace qkv
