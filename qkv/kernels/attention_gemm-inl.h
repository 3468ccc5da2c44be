// Register-blocked products of attention tiles, per SIMD target: C (+)= A·B with C's rows along the vectors.
#if defined(QKV_KERNELS_ATTENTION_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_ATTENTION_GEMM_INL_H_
#undef QKV_KERNELS_ATTENTION_GEMM_INL_H_
#else
#define QKV_KERNELS_ATTENTION_GEMM_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "qkv/kernels/attention_math-inl.h"
#include "qkv/kernels/attention_plan.h"

// Accumulators only stay in registers when every loop over them is unrolled.
#undef QKV_UNROLL
#if HWY_COMPILER_CLANG
#define QKV_UNROLL _Pragma("clang loop unroll(full)")
#else
#define QKV_UNROLL _Pragma("GCC unroll 8")
#endif

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int kLanes = static_cast<int>(hn::MaxLanes(F32()));

// Accumulators: kRows × vectors must leave registers for the vectors of B and one broadcast of A.
// 32 registers: 6 × 4 + 4 + 1; 16 registers: 6 × 2 + 2 + 1.
constexpr int kPanel = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM ? 4 : 2;
constexpr int kRows = 6;

enum class AccessA {
  rows,     // a[m * a_stride + k]
  tile,     // a[m * kTileQ + k]: rows of a score tile
  columns,  // a[k * kTileQ + m]: columns of a score tile
};

template <AccessA kA>
HWY_INLINE const float* element_a(const float* a, int64_t stride, int m) {
  if constexpr (kA == AccessA::rows) return a + m * stride;
  if constexpr (kA == AccessA::tile) return a + m * kTileQ;
  return a + m;
}

template <AccessA kA, int M, int NV>
inline HWY_NOINLINE void micro_kernel(const Product& p) {
  const F32 d;
  Vec acc[M][NV];
  QKV_UNROLL for (int m = 0; m < M; ++m) { QKV_UNROLL for (int n = 0; n < NV; ++n) acc[m][n] = hn::Zero(d); }
  if (p.accumulate) {
    QKV_UNROLL for (int m = 0; m < M; ++m) {
      const Vec before = hn::Set(d, p.before ? p.before[m] : 1.0f);
      QKV_UNROLL for (int n = 0; n < NV; ++n) {
        acc[m][n] = hn::Mul(before, hn::LoadU(d, p.c + m * p.c_stride + n * kLanes));
      }
    }
  }
  const float* HWY_RESTRICT a = p.a;
  const float* HWY_RESTRICT b = p.b;
  const int64_t a_stride = p.a_stride, b_stride = p.b_stride;
  for (int64_t k = p.K; k > 0; --k) {
    Vec row[NV];
    QKV_UNROLL for (int n = 0; n < NV; ++n) row[n] = hn::LoadU(d, b + n * kLanes);
    QKV_UNROLL for (int m = 0; m < M; ++m) {
      const Vec x = hn::Set(d, *element_a<kA>(a, a_stride, m));
      QKV_UNROLL for (int n = 0; n < NV; ++n) acc[m][n] = hn::MulAdd(x, row[n], acc[m][n]);
    }
    a += kA == AccessA::columns ? kTileQ : 1;
    b += b_stride;
  }
  if (p.after) {
    QKV_UNROLL for (int m = 0; m < M; ++m) {
      const Vec after = hn::Set(d, p.after[m]);
      QKV_UNROLL for (int n = 0; n < NV; ++n) acc[m][n] = hn::Mul(acc[m][n], after);
    }
  }
  QKV_UNROLL for (int m = 0; m < M; ++m) {
    QKV_UNROLL for (int n = 0; n < NV; ++n) hn::StoreU(acc[m][n], d, p.c + m * p.c_stride + n * kLanes);
  }
}

// Rows [0, M) of C against NV vectors, in blocks of kRows, then the rest by 4, 2 and 1.
template <AccessA kA, int NV>
HWY_INLINE void product_rows(Product p, int64_t M) {
  const auto advance = [&p](int rows) HWY_ATTR {
    p.a = element_a<kA>(p.a, p.a_stride, rows);
    p.c += rows * p.c_stride;
    if (p.before) p.before += rows;
    if (p.after) p.after += rows;
  };
  for (; M >= kRows; M -= kRows, advance(kRows)) micro_kernel<kA, kRows, NV>(p);
  if (M >= 4) {
    micro_kernel<kA, 4, NV>(p);
    advance(4);
    M -= 4;
  }
  if (M >= 2) {
    micro_kernel<kA, 2, NV>(p);
    advance(2);
    M -= 2;
  }
  if (M >= 1) micro_kernel<kA, 1, NV>(p);
}

// C [M, vectors · kLanes], vector panels outermost.
template <AccessA kA>
HWY_INLINE void product(Product p, int64_t M, int vectors) {
  for (; vectors >= kPanel; vectors -= kPanel) {
    product_rows<kA, kPanel>(p, M);
    p.b += kPanel * kLanes;
    p.c += kPanel * kLanes;
  }
  if (kPanel > 3 && vectors == 3) product_rows<kA, kPanel == 4 ? 3 : 1>(p, M);
  if (kPanel > 2 && vectors == 2) product_rows<kA, kPanel == 4 ? 2 : 1>(p, M);
  if (vectors == 1) product_rows<kA, 1>(p, M);
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
