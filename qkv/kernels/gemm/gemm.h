// Matrix products: every GEMM of qkv goes through here.
#pragma once

#include <cstdint>

#include "qkv/base/activation.h"

namespace qkv::kernels {

/// C = act(op(A)·op(B) + bias)  or, with accumulate, C += op(A)·op(B).
///   op(A) is [M,K]: a[i*lda + k], or a[k*lda + i] when a_transposed.
///   op(B) is [K,N]: b[k*ldb + j], or b[j*ldb + k] when b_transposed.
/// bias is [N] or null. pre, when given, receives op(A)·op(B) + bias before the activation (row stride ldc):
/// backward passes of gelu need it. accumulate cannot be combined with bias, activation or pre.
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
  Act activation = Act::none;
  T* pre = nullptr;
};
using GemmArgs = GemmArgsOf<float>;

/// Throws std::bad_alloc when there is no room to pack operands.
void gemm(const GemmArgs& args);

/// Up to this many rows of A, a product with B as [N,K] is dot products: B is read once, as it lies.
constexpr int64_t kDotRows = 16;
/// Such a product in parts, for callers that deal out work themselves: how many parts are worth it on `threads`, and
/// columns of one of them, on this thread. All parts together are gemm(args), whatever their number.
int64_t dot_parts(const GemmArgs& args, int64_t threads);
void dot_part(const GemmArgs& args, int64_t part, int64_t parts) noexcept;

namespace reference {
/// The specification: three plain loops, sums in double. For float and double.
template <class T>
void gemm(const GemmArgsOf<T>& args) noexcept;
}  // namespace reference

/// f64 takes the specification itself.
inline void gemm(const GemmArgsOf<double>& args) { reference::gemm(args); }

}  // namespace qkv::kernels
