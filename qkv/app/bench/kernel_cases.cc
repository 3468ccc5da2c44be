// Attention and matrix products as bench cases.
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "qkv/app/bench/cases.h"
#include "qkv/core/tensor.h"
#include "qkv/kernels/attention/attention.h"
#include "qkv/kernels/gemm/gemm.h"

namespace qkv::bench {
namespace {

int64_t size(const nlohmann::json& s, const char* name) { return s.at(name).get<int64_t>(); }

template <class T>
kernels::Strided<T> dense_rows(Tensor& t) {  // [B, H, L, D]
  return {t.f32(), t.strides()[0], t.strides()[1], t.strides()[2]};
}

// Everything of one attention call, forward and backward.
struct AttentionWork {
  AttentionWork(const kernels::AttentionDims& d, bool causal) {
    Rng rng(1);
    const auto draw = [&](int64_t L) { return Tensor::randn({d.B, d.H, L, d.D}, rng); };
    q = draw(d.Lq), k = draw(d.Lk), v = draw(d.Lk), d_out = draw(d.Lq);
    out = draw(d.Lq), d_q = draw(d.Lq), d_k = draw(d.Lk), d_v = draw(d.Lk);
    lse = Tensor::zeros({d.B, d.H, d.Lq, 1});
    in.dims = d;
    in.q = dense_rows<const float>(q);
    in.k = dense_rows<const float>(k);
    in.v = dense_rows<const float>(v);
    in.rule.scale = 1 / std::sqrt(static_cast<float>(d.D));
    in.rule.causal = causal;
    outputs = {dense_rows<float>(out), dense_rows<float>(lse)};
    grads.out = dense_rows<const float>(out);
    grads.lse = dense_rows<const float>(lse);
    grads.d_out = dense_rows<const float>(d_out);
    grads.d_q = dense_rows<float>(d_q);
    grads.d_k = dense_rows<float>(d_k);
    grads.d_v = dense_rows<float>(d_v);
  }
  Tensor q, k, v, out, lse, d_out, d_q, d_k, d_v;
  kernels::AttentionInputs<float> in;
  kernels::AttentionOutputs<float> outputs;
  kernels::AttentionGrads<float> grads;
};

}  // namespace

Work build_attention(const nlohmann::json& s) {
  const int64_t H = size(s, "heads"), D = size(s, "width");
  const kernels::AttentionDims dims{size(s, "batch"), H, H, size(s, "queries"), size(s, "keys"), D, D};
  const bool causal = s.at("causal"), both = s.at("backward");
  auto a = std::make_shared<AttentionWork>(dims, causal);
  Work work;
  const double pairs = static_cast<double>(dims.B * H * dims.Lq) * static_cast<double>(dims.Lk) * (causal ? 0.5 : 1.0);
  work.flops = (both ? 3 : 1) * 4 * pairs * static_cast<double>(D);
  work.items = 1;
  work.unit = "calls";
  work.run = [a, both] {
    kernels::attention_forward(a->in, a->outputs);
    if (both) kernels::attention_backward(a->in, a->grads);
  };
  return work;
}

Work build_gemm(const nlohmann::json& s) {
  const int64_t M = size(s, "M"), K = size(s, "K"), N = size(s, "N");
  const std::string layout = s.at("layout");
  Rng rng(1);
  Work work;
  work.items = 1;
  work.unit = "calls";
  work.flops = 2 * static_cast<double>(M * K) * static_cast<double>(N);
  if (M == 1) work.weights = 4 * static_cast<double>(K * N);
  work.run = [=, a = Tensor::randn({M, K}, rng), b = Tensor::randn({K, N}, rng), c = Tensor::zeros({M, N})]() mutable {
    const bool ta = layout[0] == 'T', tb = layout[1] == 'T';
    kernels::gemm({.M = M,
                   .N = N,
                   .K = K,
                   .a = a.f32(),
                   .lda = ta ? M : K,
                   .a_transposed = ta,
                   .b = b.f32(),
                   .ldb = tb ? K : N,
                   .b_transposed = tb,
                   .c = c.f32(),
                   .ldc = N});
  };
  return work;
}

}  // namespace qkv::bench
