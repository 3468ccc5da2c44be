// Matrix products: the one door to every GEMM of qkv.
#pragma once

#include <cstdint>

namespace qkv::kernels {

/// Applied to each result: max(0,x); x·Φ(x) with the exact erf (PyTorch's default); tanh x; 1/(1+e^-x).
enum class Activation : uint8_t { none, relu, gelu, tanh, sigmoid };

/// C = act(op(A)·op(B) + bias)  or, with accumulate, C += op(A)·op(B).
///   op(A) is [M,K]: a[i*lda + k], or a[k*lda + i] when a_transposed.
///   op(B) is [K,N]: b[k*ldb + j], or b[j*ldb + k] when b_transposed.
/// bias is [N] or null. pre, when given, receives op(A)·op(B) + bias before the activation (row stride ldc):
/// backward passes of gelu need it. accumulate excludes bias, activation and pre.
/// M, N or K may be 0: K = 0 gives act(bias) (or leaves C alone when accumulating). C and pre must not overlap
/// A, B or each other. The same inputs give the same bits for any number of threads.
template <class T>
struct GemmArgsOf {
  int64_t M = 0, N = 0, K = 0;
  const T* a = nullptr;
  int64_t lda = 0;
  bool a_transposed = false;
  const T* b = nullptr;
  int64_t ldb = 0;
  bool b_transposed = false;
  T* c = nullptr;
  int64_t ldc = 0;
  bool accumulate = false;
  const T* bias = nullptr;
  Activation activation = Activation::none;
  T* pre = nullptr;
};
using GemmArgs = GemmArgsOf<float>;

void gemm(const GemmArgs& args) noexcept;

/// How many products, and how far apart their operands lie (a stride of 0 shares the operand; C's must keep
/// the results apart).
struct GemmBatch {
  int64_t count = 0;
  int64_t a_stride = 0, b_stride = 0, c_stride = 0;
};

/// gemm(args) for item n = 0 … count-1 with a + n·a_stride, b + n·b_stride, c + n·c_stride (pre moves with c).
/// Items run in parallel; each gives the bits of a gemm call of its own.
void gemm_batched(const GemmArgs& args, const GemmBatch& batch) noexcept;

namespace reference {
/// The specification: three plain loops, sums in double. For float and double.
template <class T>
void gemm(const GemmArgsOf<T>& args) noexcept;
template <class T>
void gemm_batched(const GemmArgsOf<T>& args, const GemmBatch& batch) noexcept;
}  // namespace reference

}  // namespace qkv::kernels
