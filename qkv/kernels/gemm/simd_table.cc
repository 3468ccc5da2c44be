// The inner loops of gemm, compiled once per instruction set: tiles, a few rows, packing and what ends a product.
#include "qkv/kernels/gemm/simd_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/gemm/simd_table.cc"
#include "hwy/foreach_target.h"
// After foreach_target: what follows is compiled once per target.
#include "qkv/kernels/gemm/tiles-inl.h"
#include "qkv/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels::detail {
namespace HWY_NAMESPACE {
namespace math = ::qkv::kernels::HWY_NAMESPACE;
namespace hn = hwy::HWY_NAMESPACE;

// c[i, 0..N) += Σ over U consecutive k of a[i,k] B[k, 0..N): U rows of B stream by, the rows of C stay in L1.
template <int MR, int U>
HWY_INLINE void add_rows(const GemmFewRows& f, int64_t k) {
  const D d;
  V x[MR][U];
  for (int i = 0; i < MR; ++i)
    for (int u = 0; u < U; ++u) x[i][u] = hn::Set(d, f.a[i * f.a_stride + k + u]);
  const float* b = f.b + k * f.b_stride;
  int64_t j = 0;
  for (; j + kLanes <= f.N; j += kLanes) {
    V sum[MR];
    for (int i = 0; i < MR; ++i) sum[i] = hn::LoadU(d, f.c + i * f.c_stride + j);
    for (int u = 0; u < U; ++u) {
      const V row = hn::LoadU(d, b + u * f.b_stride + j);
      for (int i = 0; i < MR; ++i) sum[i] = hn::MulAdd(x[i][u], row, sum[i]);
    }
    for (int i = 0; i < MR; ++i) hn::StoreU(sum[i], d, f.c + i * f.c_stride + j);
  }
  for (; j < f.N; ++j)
    for (int i = 0; i < MR; ++i)
      for (int u = 0; u < U; ++u) f.c[i * f.c_stride + j] += f.a[i * f.a_stride + k + u] * b[u * f.b_stride + j];
}

template <int MR, int U>
HWY_INLINE void few_rows_of(const GemmFewRows& f) {
  int64_t k = 0;
  for (; k + U <= f.K; k += U) add_rows<MR, U>(f, k);
  for (; k < f.K; ++k) add_rows<MR, 1>(f, k);
}

void few_rows(const GemmFewRows& f) {
  constexpr int kWide = kManyRegisters ? 8 : 4;
  switch (f.M) {
    case 1:
      return few_rows_of<1, 8>(f);
    case 2:
      return few_rows_of<2, kWide>(f);
    case 3:
      return few_rows_of < 3, kManyRegisters ? 6 : 3 > (f);
    case 4:
      return few_rows_of < 4, kManyRegisters ? 5 : 2 > (f);
    default:
      return;
  }
}

#if HWY_TARGET != HWY_SCALAR
using D4 = hn::FixedTag<float, 4>;

// The sum of a vector's 128-bit blocks.
template <class DV>
HWY_INLINE hn::Vec<D4> sum_blocks(DV d, hn::Vec<DV> v) {
  if constexpr (hn::MaxLanes(d) == 4) {
    return v;
  } else {
    const hn::Half<DV> dh;
    return sum_blocks(dh, hn::Add(hn::LowerHalf(dh, v), hn::UpperHalf(dh, v)));
  }
}

// Four consecutive floats, from k on, of rows 0, 4, 8, 12 (as many as the vector has 128-bit blocks).
template <class DV>
HWY_INLINE hn::Vec<DV> load_blocks(DV d, const float* const* row, int64_t k) {
  if constexpr (hn::MaxLanes(d) == 4) {
    return hn::LoadU(d, row[0] + k);
  } else {
    const hn::Half<DV> dh;
    return hn::Combine(d, load_blocks(dh, row + hn::MaxLanes(dh), k), load_blocks(dh, row, k));
  }
}

// out[j] = element k + j of every row, j = 0..3, one lane per row.
HWY_INLINE void transpose_rows(const float* const* row, int64_t k, V* out) {
  const D d;
  const V r0 = load_blocks(d, row, k), r1 = load_blocks(d, row + 1, k);
  const V r2 = load_blocks(d, row + 2, k), r3 = load_blocks(d, row + 3, k);
  const V low02 = hn::InterleaveLower(d, r0, r2), low13 = hn::InterleaveLower(d, r1, r3);
  const V high02 = hn::InterleaveUpper(d, r0, r2), high13 = hn::InterleaveUpper(d, r1, r3);
  out[0] = hn::InterleaveLower(d, low02, low13);
  out[1] = hn::InterleaveUpper(d, low02, low13);
  out[2] = hn::InterleaveLower(d, high02, high13);
  out[3] = hn::InterleaveUpper(d, high02, high13);
}
#endif

// Σ of the lanes of four vectors, added to four consecutive floats.
HWY_INLINE void add_sums_of_four(const V* v, float* out) {
#if HWY_TARGET == HWY_SCALAR
  for (int j = 0; j < 4; ++j) out[j] += hn::GetLane(v[j]);
#else
  const D d;
  const V even = hn::Add(hn::InterleaveLower(d, v[0], v[2]), hn::InterleaveUpper(d, v[0], v[2]));
  const V odd = hn::Add(hn::InterleaveLower(d, v[1], v[3]), hn::InterleaveUpper(d, v[1], v[3]));
  const V blocks = hn::Add(hn::InterleaveLower(d, even, odd), hn::InterleaveUpper(d, even, odd));
  const D4 d4;
  hn::StoreU(hn::Add(sum_blocks(d, blocks), hn::LoadU(d4, out)), d4, out);
#endif
}

// Rows of B are fetched this many ahead of those in use: with rows of some hundred floats, the processor's own guesses
// come too late (a Transformer's token took 10 to 15 % longer). Longer rows it follows by itself, and eight of them
// would not fit into L1.
constexpr int64_t kRowsAhead = 8, kLongestFetched = 1024;

// MR rows of A against four rows of B; the first rows of A fetch what comes next.
template <int MR>
HWY_INLINE void dot_block(const GemmFewRows& f, int64_t i, int64_t j) {
  const D d;
  const float* a = f.a + i * f.a_stride;
  const float* b = f.b + j * f.b_stride;
  V acc[MR * 4];
  for (auto& v : acc) v = hn::Zero(d);
  int64_t k = 0;
  for (; k + kLanes <= f.K; k += kLanes) {
    V y[4];
    if (i == 0 && f.K <= kLongestFetched)
      for (int n = 0; n < 4; ++n) hwy::Prefetch(b + (n + kRowsAhead) * f.b_stride + k);
    for (int n = 0; n < 4; ++n) y[n] = hn::LoadU(d, b + n * f.b_stride + k);
    for (int m = 0; m < MR; ++m) {
      const V x = hn::LoadU(d, a + m * f.a_stride + k);
      for (int n = 0; n < 4; ++n) acc[m * 4 + n] = hn::MulAdd(x, y[n], acc[m * 4 + n]);
    }
  }
  for (int m = 0; m < MR; ++m) {
    float* out = f.c + (i + m) * f.c_stride + j;
    add_sums_of_four(acc + m * 4, out);
    for (int64_t t = k; t < f.K; ++t)
      for (int n = 0; n < 4; ++n) out[n] += a[m * f.a_stride + t] * b[n * f.b_stride + t];
  }
}

template <int MR>
HWY_INLINE void dot_blocks(const GemmFewRows& f, int64_t rows, int64_t i, int64_t j) {
  if constexpr (MR > 1)
    if (rows < MR) return dot_blocks<MR - 1>(f, rows, i, j);
  dot_block<MR>(f, i, j);
}

void few_rows_transposed(const GemmFewRows& f) {
  constexpr int kRows = kManyRegisters ? 6 : 3;
  const int64_t parts = (f.M + kRows - 1) / kRows, rows = f.M / parts, longer = f.M % parts;
  int64_t j = 0;
  for (; j + 4 <= f.N; j += 4)
    for (int64_t n = 0, i = 0; n < parts; ++n) {
      const int64_t now = rows + (n < longer);
      dot_blocks<kRows>(f, now, i, j);
      i += now;
    }
  const D d;
  for (; j < f.N; ++j) {
    const float* b = f.b + j * f.b_stride;
    for (int64_t i = 0; i < f.M; ++i) {
      const float* a = f.a + i * f.a_stride;
      V sum = hn::Zero(d);
      int64_t k = 0;
      for (; k + kLanes <= f.K; k += kLanes) sum = hn::MulAdd(hn::LoadU(d, a + k), hn::LoadU(d, b + k), sum);
      float total = hn::GetLane(hn::SumOfLanes(d, sum));
      for (; k < f.K; ++k) total += a[k] * b[k];
      f.c[i * f.c_stride + j] += total;
    }
  }
}

void pack(const float* src, int64_t stride, float* dst, int64_t K, int64_t cols) {
  const D d;
  if (cols == kWidth) {
    for (int64_t k = 0; k < K; ++k, src += stride, dst += kWidth)
      for (int n = 0; n < kWidth; n += kLanes) hn::StoreU(hn::LoadU(d, src + n), d, dst + n);
    return;
  }
  for (int64_t k = 0; k < K; ++k, src += stride, dst += kWidth) {
    int64_t n = 0;
    for (; n + kLanes <= cols; n += kLanes) hn::StoreU(hn::LoadU(d, src + n), d, dst + n);
    if (n < cols) hn::StoreU(load_first(src + n, cols - n), d, dst + n);
  }
}

void pack_transposed(const float* src, int64_t stride, float* dst, int64_t K, int64_t cols) {
  int64_t j = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; j + kLanes <= cols; j += kLanes) {
    const float* row[kLanes];
    for (int r = 0; r < kLanes; ++r) row[r] = src + (j + r) * stride;
    int64_t k = 0;
    for (; k + 4 <= K; k += 4) {
      V out[4];
      transpose_rows(row, k, out);
      for (int64_t i = 0; i < 4; ++i) hn::StoreU(out[i], D(), dst + (k + i) * kWidth + j);
    }
    for (; k < K; ++k)
      for (int r = 0; r < kLanes; ++r) dst[k * kWidth + j + r] = row[r][k];
  }
#endif
  if (j == kWidth) return;
  for (int64_t k = 0; k < K; ++k) {
    for (int64_t r = j; r < cols; ++r) dst[k * kWidth + r] = src[r * stride + k];
    std::fill(dst + k * kWidth + cols, dst + (k + 1) * kWidth, 0.0f);
  }
}

template <class F>
HWY_INLINE void finish_with(const GemmFinish& f, const F& act) {
  const D d;
  for (int64_t i = 0; i < f.rows; ++i) {
    float* c = f.c + i * f.stride;
    if (f.pre) std::memcpy(f.pre + i * f.stride, c, static_cast<size_t>(f.cols) * sizeof(float));
    int64_t j = 0;
    for (; j + kLanes <= f.cols; j += kLanes) hn::StoreU(act(hn::LoadU(d, c + j)), d, c + j);
    if (j == f.cols) continue;
    store_first(act(load_first(c + j, f.cols - j)), c + j, f.cols - j);
  }
}

void finish(const GemmFinish& f) {
  const D d;
  switch (f.activation) {
    case Act::none:
      return finish_with(f, [](V x) HWY_ATTR { return x; });
    case Act::relu:
      return finish_with(f, [d](V x) HWY_ATTR { return math::relu_v(d, x); });
    case Act::gelu:
      return finish_with(f, [d](V x) HWY_ATTR { return math::gelu_v(d, x); });
    case Act::tanh:
      return finish_with(f, [d](V x) HWY_ATTR { return math::tanh_v(d, x); });
    case Act::sigmoid:
      return finish_with(f, [d](V x) HWY_ATTR { return math::sigmoid_v(d, x); });
  }
}

template <bool kByColumns, size_t... R>
void fill_packing_tiles(GemmKernels& k, std::index_sequence<R...>) {
  ((k.packing_tiles[kByColumns][R] = &tiles<static_cast<int>(R) + 1, kVectors, kByColumns, OnTheWay::pack_b>), ...);
}

template <int NV, bool kByColumns, size_t... R>
void fill_tiles(GemmKernels& k, std::index_sequence<R...>) {
  ((k.tiles[kByColumns][NV - 1][R] = &tiles<static_cast<int>(R) + 1, NV, kByColumns>), ...);
}

template <int NV, size_t... R>
void fill_high_tiles(GemmKernels& k, std::index_sequence<R...>) {
  ((k.high_tiles[NV - 1][R] = &tiles<static_cast<int>(R) + 1, NV, false, OnTheWay::fetch_b>), ...);
}

template <bool kByColumns, size_t... N>
void fill_all(GemmKernels& k, std::index_sequence<N...>) {
  const auto rows = std::make_index_sequence<kTileRows>();
  (fill_tiles<static_cast<int>(N) + 1, kByColumns>(k, rows), ...);
  fill_packing_tiles<kByColumns>(k, rows);
}

GemmKernels make_table() {
  GemmKernels k;
  k.lanes = kLanes;
  k.vectors = kVectors;
  k.fetch_steps = kFetchSteps;
  k.fetch_together = kUnrolled;
  fill_all<false>(k, std::make_index_sequence<kVectors>());
  fill_all<true>(k, std::make_index_sequence<kVectors>());
  if constexpr (kVectors > kHighTileVectors) {
    fill_high_tiles<1>(k, std::make_index_sequence<kHighTileRows>());
    fill_high_tiles<2>(k, std::make_index_sequence<kHighTileRows>());
  }
  k.few_rows = &few_rows;
  k.few_rows_transposed = &few_rows_transposed;
  k.pack = &pack;
  k.pack_transposed = &pack_transposed;
  k.finish = &finish;
  return k;
}

const GemmKernels* table() {
  static const GemmKernels kernels = make_table();
  return &kernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels::detail {
HWY_EXPORT(table);
const GemmKernels& gemm_kernels() { return *HWY_DYNAMIC_DISPATCH(table)(); }
}  // namespace qkv::kernels::detail
#endif
