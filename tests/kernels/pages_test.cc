// Attention of one position to pages against the specification, on every instruction set.
#include "kernels/kernel_testing.h"
#include "qkv/kernels/attention/attention.h"

namespace qkv::kernels {
namespace {

class Pages : public EveryTarget {};
INSTANTIATE_TEST_SUITE_P(Targets, Pages, testing::ValuesIn(simd_targets()), target_name);

TEST_P(Pages, EqualTheSpecification) {
  for (const int64_t D : {1, 5, 16, 40}) {
    for (const int64_t keys : {0, 1, 3, 7, 30}) {
      constexpr int64_t kHeads = 2, kPage = 7;
      const int64_t Dv = D + 3, W = D + Dv + 2, pages = (keys + kPage - 1) / kPage;
      const std::vector<float> q = random_values(kHeads * D, 1), kv = random_values(pages * kPage * W, 2),
                               bias = random_values(kHeads * 40, 3);
      std::vector<const float*> at;
      for (int64_t n = 0; n < pages; ++n) at.push_back(kv.data() + n * kPage * W);
      std::vector<float> got(static_cast<size_t>(kHeads * Dv), 9), want(got);
      attend_pages({.heads = kHeads,
                    .D = D,
                    .Dv = Dv,
                    .keys = keys,
                    .q = q.data(),
                    .page_rows = kPage,
                    .k_pages = at.data(),
                    .v_pages = at.data(),
                    .k_offset = 1,
                    .v_offset = D + 2,
                    .k_stride = W,
                    .v_stride = W,
                    .scale = 0.7f,
                    .bias = bias.data(),
                    .bias_stride = 40,
                    .out = got.data()});
      AttentionInputs<float> in;
      in.dims = {1, kHeads, 1, 1, keys, D, Dv};
      in.q = {q.data(), 0, D, D};
      in.k = {kv.data() + 1, 0, 0, W};
      in.v = {kv.data() + D + 2, 0, 0, W};
      in.rule.scale = 0.7f;
      in.rule.bias = {bias.data(), 0, 40, 0, 1, keys};
      reference::attention_forward(in, {{want.data(), 0, Dv, Dv}, {}});
      expect_close(got, want, 1e-5, 1e-5, std::to_string(D) + " " + std::to_string(keys));
    }
  }
}

}  // namespace
}  // namespace qkv::kernels
