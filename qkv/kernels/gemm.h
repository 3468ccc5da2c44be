// Matrix products: the one door to every GEMM of qkv.
#pragma once

#include <cstdint>

namespace qkv::kernels {

enum class Activation : uint8_t { none, relu, gelu, tanh, sigmoid };

/// C = act(op(A)·op(B) + bias)  or, with accumulate, C += op(A)·op(B).
///   op(A) is [M,K]: a[i*lda + k], or a[k*lda + i] when a_transposed.
///   op(B) is [K,N]: b[k*ldb + j], or b[j*ldb + k] when b_transposed.
/// bias is [N] or null. pre, when given, receives op(A)·op(B) + bias before the activation (row stride ldc):
/// backward passes of gelu need it. accumulate excludes bias, activation and pre.
/// The same inputs give the same bits for any number of threads.
struct GemmArgs {
  int64_t M = 0, N = 0, K = 0;
  const float* a = nullptr;
  int64_t lda = 0;
  bool a_transposed = false;
  const float* b = nullptr;
  int64_t ldb = 0;
  bool b_transposed = false;
  float* c = nullptr;
  int64_t ldc = 0;
  bool accumulate = false;
  const float* bias = nullptr;
  Activation activation = Activation::none;
  float* pre = nullptr;
};

void gemm(const GemmArgs& args) noexcept;

namespace reference {
/// The specification: three plain loops, sums in double for f32 inputs.
void gemm(const GemmArgs& args) noexcept;
}  // namespace reference

}  // namespace qkv::kernels
