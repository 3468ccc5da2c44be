// Every case of the table: f32 kernels against the double reference on every SIMD target.
#include "qkv/kernels/attention/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "attention_data.h"
#include "qkv/base/parallel.h"
#include "qkv/kernels/simd_target.h"

namespace qkv::kernels {
namespace {

using cases::AttentionCase;
using cases::AttentionData;

class AttentionCases : public ::testing::TestWithParam<AttentionCase> {};
INSTANTIATE_TEST_SUITE_P(Table, AttentionCases, ::testing::ValuesIn(cases::attention_cases()), [](const auto& info) {
  std::string name = info.param.name;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

// Largest difference relative to the largest finite expected value; NaN and Inf must be in the same places.
double difference(const std::vector<float>& got, const std::vector<double>& want) {
  double worst = 0, top = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double g = got[i], w = want[i];
    if (std::isnan(w) || std::isinf(w)) {
      if (std::isnan(w) ? !std::isnan(g) : g != w) return INFINITY;
      continue;
    }
    if (!std::isfinite(g)) return INFINITY;
    worst = std::max(worst, std::abs(g - w));
    top = std::max(top, std::abs(w));
  }
  return worst / std::max(top, 0.1);  // a bias along rows only has no gradient at all: there, the size is 1
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

TEST_P(AttentionCases, ForwardMatchesReferenceOnEveryTarget) {
  AttentionData<double> want(GetParam());
  reference::attention_forward(want.in, want.outputs());
  for (const std::string& target : simd_targets()) {
    const ScopedSimdTarget scope(target);
    AttentionData<float> got(GetParam());
    attention_forward(got.in, got.outputs());
    EXPECT_LT(difference(got.out, want.out), 2e-5) << target;
    EXPECT_LT(difference(got.lse, want.lse), 2e-5) << target;
  }
}

TEST_P(AttentionCases, BackwardMatchesReferenceOnEveryTarget) {
  AttentionData<double> want(GetParam());
  reference::attention_forward(want.in, want.outputs());
  reference::attention_backward(want.in, want.grads());
  for (const std::string& target : simd_targets()) {
    const ScopedSimdTarget scope(target);
    AttentionData<float> got(GetParam());
    attention_forward(got.in, got.outputs());
    attention_backward(got.in, got.grads());
    EXPECT_LT(difference(got.d_q, want.d_q), 2e-5) << target;
    EXPECT_LT(difference(got.d_k, want.d_k), 2e-5) << target;
    EXPECT_LT(difference(got.d_v, want.d_v), 2e-5) << target;
    EXPECT_LT(difference(got.d_bias, want.d_bias), 2e-5) << target;
    EXPECT_LT(difference(got.d_additive, want.d_additive), 2e-5) << target;
  }
}

TEST_P(AttentionCases, SameBitsForAnyNumberOfThreads) {
  AttentionData<float> one(GetParam());
  set_num_threads(1);
  attention_forward(one.in, one.outputs());
  attention_backward(one.in, one.grads());
  for (const int threads : {2, 3}) {
    set_num_threads(threads);
    AttentionData<float> many(GetParam());
    attention_forward(many.in, many.outputs());
    attention_backward(many.in, many.grads());
    EXPECT_TRUE(same_bits(one.out, many.out) && same_bits(one.lse, many.lse)) << threads;
    EXPECT_TRUE(same_bits(one.d_q, many.d_q) && same_bits(one.d_k, many.d_k)) << threads;
    EXPECT_TRUE(same_bits(one.d_v, many.d_v) && same_bits(one.d_bias, many.d_bias)) << threads;
    EXPECT_TRUE(same_bits(one.d_additive, many.d_additive)) << threads;
  }
  set_num_threads(2);
}

// Loss Σ out ∘ d_out along x + step · direction, for a central difference.
double loss_at(AttentionData<double>& data, std::vector<double>& x, const std::vector<double>& direction, double step) {
  const std::vector<double> kept = x;
  for (size_t i = 0; i < x.size(); ++i) x[i] += step * direction[i];
  reference::attention_forward(data.in, data.outputs());
  x = kept;
  double loss = 0;
  for (size_t i = 0; i < data.out.size(); ++i) loss += data.out[i] * data.d_out[i];
  return loss;
}

TEST_P(AttentionCases, ReferenceGradientsMatchFiniteDifferences) {
  const AttentionCase& c = GetParam();
  if (c.poison != cases::Poison::none || c.dims.Lq * c.dims.Lk > 30000) GTEST_SKIP() << "no numbers to differentiate";
  AttentionData<double> data(c);
  reference::attention_forward(data.in, data.outputs());
  reference::attention_backward(data.in, data.grads());
  Rng rng(11);
  const auto check = [&](const char* name, std::vector<double>& x, const std::vector<double>& d_x) {
    std::vector<double> direction(x.size());
    double expected = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      direction[i] = std::isfinite(x[i]) ? rng.normal() : 0;
      expected += direction[i] * d_x[i];
    }
    const double h = 1e-6;
    const double measured = (loss_at(data, x, direction, h) - loss_at(data, x, direction, -h)) / (2 * h);
    EXPECT_NEAR(measured, expected, 2e-6 * std::max(10.0, std::abs(expected))) << name;
  };
  check("v", data.v, data.d_v);
  if (c.normaliser == Normaliser::hard) return;  // its gradient reaches the values only
  check("q", data.q, data.d_q);
  check("k", data.k, data.d_k);
  if (!data.bias.empty()) check("bias", data.bias, data.d_bias);
  if (!data.additive.empty()) check("additive", data.additive, data.d_additive);
}

TEST_P(AttentionCases, ScoresOfEveryStageMatchReference) {
  AttentionData<double> want(GetParam());
  for (const std::string& target : simd_targets()) {
    const ScopedSimdTarget scope(target);
    AttentionData<float> got(GetParam());
    const AttentionDims& dims = got.in.dims;
    for (const ScoreStage stage : {ScoreStage::raw, ScoreStage::capped, ScoreStage::biased, ScoreStage::weights}) {
      const int64_t b = dims.B - 1, h = dims.H - 1;
      const int64_t Lq = got.in.q_offsets ? got.in.q_offsets[b + 1] - got.in.q_offsets[b] : dims.Lq;
      const ScoreWindow window{b, h, Lq / 3, Lq, stage};
      std::vector<double> expected(static_cast<size_t>((Lq - Lq / 3) * dims.Lk));
      std::vector<float> scores(expected.size());
      reference::attention_scores(want.in, window, expected.data());
      attention_scores(got.in, window, scores.data());
      EXPECT_LT(difference(scores, expected), 2e-5) << target << " stage " << static_cast<int>(stage);
    }
  }
}

TEST_P(AttentionCases, StatisticsMatchReference) {
  if (GetParam().poison == cases::Poison::seen) GTEST_SKIP() << "statistics of NaN";
  AttentionData<double> want(GetParam());
  AttentionData<float> got(GetParam());
  std::vector<double> expected[5];
  std::vector<float> stats[5];
  const auto run = [&](auto& data, auto& arrays, auto&& fn) {
    auto at = data.outputs().lse;
    AttentionStats<std::remove_reference_t<decltype(*at.data)>> s{at, at, at, at, at};
    for (int i = 0; i < 5; ++i) arrays[i].resize(data.lse.size());
    s.entropy.data = arrays[0].data();
    s.max_weight.data = arrays[1].data();
    s.argmax.data = arrays[2].data();
    s.mean_distance.data = arrays[3].data();
    s.lse.data = arrays[4].data();
    fn(data.in, s);
  };
  run(want, expected, [](const auto& in, const auto& s) { reference::attention_stats(in, s); });
  run(got, stats, [](const auto& in, const auto& s) { attention_stats(in, s); });
  for (const int i : {0, 1, 2, 3, 4}) EXPECT_LT(difference(stats[i], expected[i]), 5e-5) << "statistic " << i;
}

// Sequence b of a batch on its own: only its own queries and its own keys, nothing padded.
template <class T>
T* shifted(T* data, int64_t by) {
  return data ? data + by : nullptr;
}
AttentionInputs<float> alone(const AttentionInputs<float>& in, int64_t b, int64_t Lq, int64_t Lk) {
  AttentionInputs<float> one = in;
  one.dims.B = 1;
  one.dims.Lq = Lq;
  one.dims.Lk = Lk;
  one.q_offsets = one.k_offsets = nullptr;
  const int64_t q_begin = in.q_offsets ? in.q_offsets[b] : 0, k_begin = in.k_offsets ? in.k_offsets[b] : 0;
  one.q.data = in.q.row(b, 0, q_begin);
  one.k.data = in.k.row(b, 0, k_begin);
  one.v.data = in.v.row(b, 0, k_begin);
  one.rule.mask.data = shifted(in.rule.mask.data, b * in.rule.mask.b_stride);
  one.rule.bias.data = shifted(in.rule.bias.data, b * in.rule.bias.b_stride);
  one.rule.key_lens = shifted(in.rule.key_lens, b * in.rule.lens_b_stride);
  one.rule.batch_offsets = shifted(in.rule.batch_offsets, b);
  return one;
}

TEST_P(AttentionCases, SameBitsForASequenceAloneAndInItsBatch) {
  const AttentionCase& c = GetParam();
  if (c.dropout > 0) GTEST_SKIP() << "dropout depends on the place in the batch";
  if (c.poison == cases::Poison::seen) GTEST_SKIP() << "padding queries see NaN";
  AttentionData<float> batch(c);
  const auto [B, H, Hkv, Lq, Lk, D, Dv] = c.dims;
  // Padding queries must not reach the keys' gradients: the last third of every sequence counts as padding.
  const auto own_queries = [&, Lq = c.dims.Lq](int64_t b) {
    return batch.in.q_offsets ? batch.in.q_offsets[b + 1] - batch.in.q_offsets[b] : (Lq * 2 + 2) / 3;
  };
  const AttentionGrads<float> grads = batch.grads();
  for (int64_t b = 0; b < B && !c.packed; ++b) {
    for (int64_t h = 0; h < H; ++h) {
      for (int64_t i = own_queries(b); i < Lq; ++i) std::fill_n(const_cast<float*>(grads.d_out.row(b, h, i)), Dv, 0.0f);
    }
  }
  attention_forward(batch.in, batch.outputs());
  attention_backward(batch.in, grads);
  for (int64_t b = 0; b < B; ++b) {
    const int64_t own_q = own_queries(b), q_begin = c.packed ? batch.in.q_offsets[b] : 0;
    const int64_t k_begin = c.packed ? batch.in.k_offsets[b] : 0;
    int64_t own_k = c.packed ? batch.in.k_offsets[b + 1] - k_begin : Lk;
    if (c.lens == cases::Lens::batch) own_k = std::min(own_k, batch.key_lens[static_cast<size_t>(b)]);
    if (own_q == 0) continue;
    AttentionData<float> solo(c);
    const AttentionInputs<float> in = alone(batch.in, b, own_q, own_k);
    AttentionOutputs<float> out = solo.outputs();
    AttentionGrads<float> d = solo.grads();
    const auto whole = batch.outputs();
    out.out.data = out.out.row(b, 0, q_begin);
    out.lse.data = out.lse.row(b, 0, q_begin);
    d.out.data = out.out.data;
    d.lse.data = out.lse.data;
    d.d_out.data = grads.d_out.row(b, 0, q_begin);
    d.d_q.data = d.d_q.row(b, 0, q_begin);
    d.d_k.data = d.d_k.row(b, 0, k_begin);
    d.d_v.data = d.d_v.row(b, 0, k_begin);
    if (d.d_bias) d.d_bias += b * in.rule.bias.b_stride;
    attention_forward(in, out);
    attention_backward(in, d);
    const auto same = [&](const char* name, const auto& x, const auto& y, int64_t heads, int64_t begin, int64_t rows,
                          int64_t width) {
      bool equal = true;
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t i = 0; i < rows; ++i) {
          equal &= std::memcmp(x.row(0, h, i), y.row(b, h, begin + i), static_cast<size_t>(width) * sizeof(float)) == 0;
        }
      }
      EXPECT_TRUE(equal) << name << " of sequence " << b;
    };
    same("out", out.out, whole.out, H, q_begin, own_q, Dv);
    same("lse", out.lse, whole.lse, H, q_begin, own_q, 1);
    same("d_q", d.d_q, grads.d_q, H, q_begin, own_q, D);
    same("d_k", d.d_k, grads.d_k, Hkv, k_begin, own_k, D);
    same("d_v", d.d_v, grads.d_v, Hkv, k_begin, own_k, Dv);
  }
}

TEST_P(AttentionCases, SameBitsForOneQueryAloneAndAmongMany) {
  const AttentionCase& c = GetParam();
  if (c.dropout > 0) GTEST_SKIP() << "dropout depends on the place in the batch";
  for (const std::string& target : simd_targets()) {
    const ScopedSimdTarget scope(target);
    AttentionData<float> batch(c);
    const auto many = batch.outputs();
    attention_forward(batch.in, many);
    const auto [B, H, Hkv, Lq, Lk, D, Dv] = c.dims;
    const int64_t own_k = c.packed ? batch.in.k_offsets[1] : Lk;
    AttentionData<float> solo(c);
    auto one = solo.outputs();
    attention_forward(alone(batch.in, 0, 1, own_k), one);
    for (int64_t h = 0; h < H; ++h) {
      EXPECT_EQ(std::memcmp(one.out.row(0, h, 0), many.out.row(0, h, 0), static_cast<size_t>(Dv) * sizeof(float)), 0)
          << target << " head " << h;
    }
  }
}

// Peak resident memory in KiB since the last reset.
int64_t peak_kib(bool reset) {
  if (reset) std::ofstream("/proc/self/clear_refs") << "5";
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word != "VmHWM:") continue;
    int64_t kib = 0;
    status >> kib;
    return kib;
  }
  return 0;
}

// Every key counts the same, so no gradient reaches queries and keys.
TEST(Attention, AScaleOfZeroHasGradientsOfZero) {
  for (const auto bias : {cases::Array::none, cases::Array::full}) {
    AttentionCase c{.name = "scale 0", .dims = {1, 2, 2, 33, 47, 16, 16}, .bias = bias};
    AttentionData<double> want(c);
    AttentionData<float> got(c);
    want.in.rule.scale = got.in.rule.scale = 0;
    reference::attention_forward(want.in, want.outputs());
    reference::attention_backward(want.in, want.grads());
    attention_forward(got.in, got.outputs());
    attention_backward(got.in, got.grads());
    EXPECT_LT(difference(got.out, want.out), 2e-5);
    EXPECT_LT(difference(got.d_v, want.d_v), 2e-5);
    EXPECT_LT(difference(got.d_bias, want.d_bias), 2e-5);
    for (const float x : got.d_q) EXPECT_EQ(x, 0.0f);
    for (const float x : got.d_k) EXPECT_EQ(x, 0.0f);
  }
}

TEST(Attention, LongSequencesNeedLittleMemory) {
  const int64_t n = 32768, D = 64;
  AttentionInputs<float> in;
  in.dims = {1, 1, 1, n, n, D, D};
  std::vector<float> x(static_cast<size_t>(n * D), 0.25f), out(x.size(), 1.0f);
  in.q = in.k = in.v = {x.data(), n * D, n * D, D};
  in.rule.causal = true;
  in.rule.window_left = 200;  // every tile of queries is there, most tiles of keys are skipped
  set_num_threads(2);
  const int64_t before = peak_kib(true);
  attention_forward(in, {{out.data(), n * D, n * D, D}, {}});
  const int64_t after = peak_kib(false);
  if (before == 0) GTEST_SKIP() << "no /proc here";
  EXPECT_LT(after - before, 20 * 1024);
  EXPECT_NEAR(out[static_cast<size_t>(n * D - 1)], 0.25f, 1e-6f);
}

}  // namespace
}  // namespace qkv::kernels
