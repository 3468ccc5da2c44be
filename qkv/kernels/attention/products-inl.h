// Register-blocked products of attention tiles, per SIMD target: C (+)= A·B with C's rows along the vectors.
#if defined(QKV_KERNELS_ATTENTION_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_ATTENTION_PRODUCTS_INL_H_
#undef QKV_KERNELS_ATTENTION_PRODUCTS_INL_H_
#else
#define QKV_KERNELS_ATTENTION_PRODUCTS_INL_H_
#endif

#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "qkv/kernels/attention/math-inl.h"
#include "qkv/kernels/attention/query_tiles.h"

// Accumulators only stay in registers when every loop over them is unrolled.
#undef QKV_UNROLL
#if HWY_COMPILER_CLANG
#define QKV_UNROLL _Pragma("clang loop unroll(full)")
#else
#define QKV_UNROLL _Pragma("GCC unroll 16")
#endif

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int kLanes = static_cast<int>(hn::MaxLanes(F32()));

// Accumulators, rows × vectors, must leave registers for the vectors of B and one broadcast of A.
// 32 registers: 6 × 4 + 4 + 1 or 12 × 2 + 2 + 1; 16 registers: 6 × 2 + 2 + 1.
constexpr int kPanel = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM ? 4 : 2;
constexpr int kRows = 6;

enum class AccessA {
  rows,     // a[m * a_stride + k]
  tile,     // a[m * kTileQ + k]: rows of a score tile
  columns,  // a[k * kTileQ + m]: columns of a score tile
};

// C[m, n] = init(m, n) + Σ_k A(m, k) · B[k, n]; the sum runs over k in order, so no blocking changes a bit.
struct Product {
  const float* a = nullptr;  // how A(m, k) is found: AccessA
  int64_t a_stride = 0;
  const float* b = nullptr;  // B[k, n] at b[k * b_stride + n]
  int64_t b_stride = 0;
  int64_t K = 0;
  float* c = nullptr;  // C[m, n] at c[m * c_stride + n]
  int64_t c_stride = 0;
  bool accumulate = false;        // init = C, else 0
  const float* before = nullptr;  // [M] init is multiplied by before[m]
  const float* after = nullptr;   // [M] the result is multiplied by after[m]
};

// Rows of a block of NV vectors: few vectors take more rows, to cover the latency of the multiply-adds.
constexpr int block_rows(int vectors) { return vectors >= 3 || kPanel == 2 ? kRows : vectors == 2 ? 12 : 16; }

// Whether the last rows are cut in halves: after a block of 6 or 12, one of 2 or 4 would wait for its own sums.
constexpr bool in_halves(int block, int64_t left) { return (block == 6 && left == 8) || (block == 12 && left == 16); }

// The addresses of A(m, k) for the rows of a block and one k. Rows at a run-time stride take one pointer for every
// three, since base + stride and base + 2 · stride are addressing modes.
template <AccessA kA, int M>
struct PointersA {
  HWY_INLINE PointersA(const float* a, int64_t stride_) : stride(stride_) {
    QKV_UNROLL for (int g = 0; g < kGroups; ++g) base[g] = a + (kA == AccessA::rows ? 3 * g * stride_ : 0);
  }
  HWY_INLINE float get(int m) const {
    if constexpr (kA == AccessA::rows) return base[m / 3][m % 3 * stride];
    if constexpr (kA == AccessA::tile) return base[0][m * kTileQ];
    return base[0][m];
  }
  HWY_INLINE void next() {
    QKV_UNROLL for (int g = 0; g < kGroups; ++g) base[g] += kA == AccessA::columns ? kTileQ : 1;
  }

  static constexpr int kGroups = kA == AccessA::rows ? (M + 2) / 3 : 1;
  const float* base[kGroups];
  int64_t stride;
};

template <AccessA kA, int M, int NV>
inline HWY_NOINLINE void micro_kernel(const Product& given) {
  const F32 d;
  const Product p = given;  // a copy nobody else can see: its members stay in registers
  Vec acc[M][NV];
  QKV_UNROLL for (int m = 0; m < M; ++m) { QKV_UNROLL for (int n = 0; n < NV; ++n) acc[m][n] = hn::Zero(d); }
  if (p.accumulate) {
    const float* c = p.c;
    QKV_UNROLL for (int m = 0; m < M; ++m, c += p.c_stride) {
      QKV_UNROLL for (int n = 0; n < NV; ++n) acc[m][n] = hn::LoadU(d, c + n * kLanes);
    }
    if (p.before) {
      QKV_UNROLL for (int m = 0; m < M; ++m) {
        const Vec before = hn::Set(d, p.before[m]);
        QKV_UNROLL for (int n = 0; n < NV; ++n) acc[m][n] = hn::Mul(before, acc[m][n]);
      }
    }
  }
  PointersA<kA, M> a(p.a, p.a_stride);
  const float* b = p.b;
  for (int64_t k = p.K; k > 0; --k) {
    Vec row[NV];
    QKV_UNROLL for (int n = 0; n < NV; ++n) row[n] = hn::LoadU(d, b + n * kLanes);
    QKV_UNROLL for (int m = 0; m < M; ++m) {
      const Vec x = hn::Set(d, a.get(m));
      QKV_UNROLL for (int n = 0; n < NV; ++n) acc[m][n] = hn::MulAdd(x, row[n], acc[m][n]);
    }
    a.next();
    b += p.b_stride;
  }
  if (p.after) {
    QKV_UNROLL for (int m = 0; m < M; ++m) {
      const Vec after = hn::Set(d, p.after[m]);
      QKV_UNROLL for (int n = 0; n < NV; ++n) acc[m][n] = hn::Mul(acc[m][n], after);
    }
  }
  float* c = p.c;
  QKV_UNROLL for (int m = 0; m < M; ++m, c += p.c_stride) {
    QKV_UNROLL for (int n = 0; n < NV; ++n) hn::StoreU(acc[m][n], d, c + n * kLanes);
  }
}

// Rows [0, M) of C against NV vectors, in blocks, then the rest by 8, 4, 2 and 1.
template <AccessA kA, int NV>
HWY_INLINE void product_rows(Product p, int64_t M) {
  const auto advance = [&p](int rows) HWY_ATTR {
    p.a += rows * (kA == AccessA::rows ? p.a_stride : kA == AccessA::tile ? kTileQ : 1);
    p.c += rows * p.c_stride;
    if (p.before) p.before += rows;
    if (p.after) p.after += rows;
  };
  constexpr int kBlock = block_rows(NV);
  for (; M >= kBlock && !in_halves(kBlock, M); M -= kBlock, advance(kBlock)) micro_kernel<kA, kBlock, NV>(p);
  const auto rest = [&](auto rows) HWY_ATTR {
    constexpr int kCount = decltype(rows)::value;
    if (kCount >= kBlock) return;
    for (; M >= kCount; M -= kCount, advance(kCount)) micro_kernel<kA, kCount, NV>(p);
  };
  rest(std::integral_constant<int, 8>());
  rest(std::integral_constant<int, 4>());
  rest(std::integral_constant<int, 2>());
  rest(std::integral_constant<int, 1>());
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
