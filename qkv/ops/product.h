// One matrix product on plain memory, for the ops that call gemm directly. Not a public header.
#pragma once

#include "qkv/kernels/gates.h"
#include "qkv/kernels/gemm/gemm.h"

namespace qkv {

/// A matrix as a product reads it.
template <class T>
struct Operand {
  kernels::RowMajor<const T> rows;
  bool transposed = false;
};

/// c [M,N] (+)= op(a)·op(b) + bias.
template <class T>
void product(const int64_t (&mnk)[3], const Operand<T>& a, const Operand<T>& b, kernels::RowMajor<T> c, bool accumulate,
             const T* bias = nullptr) {
  kernels::gemm(kernels::GemmArgsOf<T>{.M = mnk[0],
                                       .N = mnk[1],
                                       .K = mnk[2],
                                       .a = a.rows.data,
                                       .lda = a.rows.stride,
                                       .a_transposed = a.transposed,
                                       .b = b.rows.data,
                                       .ldb = b.rows.stride,
                                       .b_transposed = b.transposed,
                                       .c = c.data,
                                       .ldc = c.stride,
                                       .accumulate = accumulate,
                                       .bias = bias});
}

}  // namespace qkv
