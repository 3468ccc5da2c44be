// Every case of the table: f32 kernels against the double reference on every SIMD target.
#include "qkv/kernels/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "attention_cases.h"
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

// Largest difference relative to the largest finite expected value; NaN and Inf must stand in the same places.
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
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
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

}  // namespace
}  // namespace qkv::kernels
