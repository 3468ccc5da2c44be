// The specification of gemm: plain loops.
#include <cmath>

#include "qkv/kernels/gemm/gemm.h"

namespace qkv::kernels::reference {
namespace {

double activate(Act activation, double x) {
  switch (activation) {
    case Act::none:
      return x;
    case Act::relu:
      return x > 0 ? x : (x != x ? x : 0.0);
    case Act::gelu:
      return 0.5 * x * std::erfc(-x * 0.70710678118654752440);
    case Act::tanh:
      return std::tanh(x);
    case Act::sigmoid:
      return 1 / (1 + std::exp(-x));
  }
  return x;
}

}  // namespace

template <class T>
void gemm(const GemmArgsOf<T>& g) noexcept {
  const int64_t a_row = g.a_transposed ? 1 : g.lda, a_col = g.a_transposed ? g.lda : 1;
  const int64_t b_row = g.b_transposed ? 1 : g.ldb, b_col = g.b_transposed ? g.ldb : 1;
  for (int64_t i = 0; i < g.M; ++i) {
    for (int64_t j = 0; j < g.N; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < g.K; ++k)
        sum += static_cast<double>(g.a[i * a_row + k * a_col]) * static_cast<double>(g.b[k * b_row + j * b_col]);
      const int64_t at = i * g.ldc + j;
      if (g.accumulate) {
        g.c[at] = static_cast<T>(static_cast<double>(g.c[at]) + sum);
        continue;
      }
      if (g.bias) sum += static_cast<double>(g.bias[j]);
      if (g.pre) g.pre[at] = static_cast<T>(sum);
      g.c[at] = static_cast<T>(activate(g.activation, sum));
    }
  }
}

template void gemm(const GemmArgsOf<float>&) noexcept;
template void gemm(const GemmArgsOf<double>&) noexcept;

}  // namespace qkv::kernels::reference
