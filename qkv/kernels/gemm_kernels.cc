// The register-blocked inner loops of gemm, compiled once per instruction set.
#include "qkv/kernels/gemm_kernels.h"

#include <algorithm>
#include <cstring>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/gemm_kernels.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
// After foreach_target: what follows is compiled once per target.
#include "qkv/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels::detail {
namespace HWY_NAMESPACE {
namespace math = ::qkv::kernels::HWY_NAMESPACE;
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));
// Sums of 6 rows x 4 vectors, four vectors of B and four of A fill 32 vector registers; 6 x 2, two and two fill 16.
// Four vectors take fewer instructions for a multiply-add than two and as many more rows, which counts where another
// thread shares the core; and the rows are few enough to be read where they lie.
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr bool kManyRegisters = true;
#else
constexpr bool kManyRegisters = false;
#endif
constexpr int kVectors = kManyRegisters ? kMaxTileVectors : 2;
constexpr int kWidth = kVectors * kLanes;
constexpr int kLineFloats = 16;                             // floats of a cache line
constexpr int kFetchSteps = std::max(kWidth, kLineFloats);  // of k, in which a width of A's row is used up

// The sums of a tile. Every index into it is a compile-time constant: with a loop variable, or a lambda in
// between, the compiler keeps a copy of the sums in memory and stores to it on every step.
template <int MR, int NV>
struct Sums {
  HWY_INLINE Sums() {}  // the compiler's own would not belong to the target
  V v[MR * NV];
};

// Where A's rows are. Grouped by three behind one pointer each: p, p + s and p + 2s are all x86 addressing modes,
// so six rows need two pointers.
template <int MR, bool kByColumns>
struct RowPointers {
  static constexpr int kGroups = kByColumns ? 1 : (MR + 2) / 3;
  const float* p[kGroups];
  int64_t stride;

  template <int R>
  HWY_INLINE float at() const {
    if constexpr (kByColumns) return p[0][R];
    return p[R / 3][(R % 3) * stride];
  }
};

template <int R, int MR, int NV, bool kByColumns>
HWY_INLINE void multiply_row(Sums<MR, NV>& acc, const RowPointers<MR, kByColumns>& a, V b0, V b1, V b2, V b3) {
  const V x = hn::Set(D(), a.template at<R>());
  acc.v[R * NV] = hn::MulAdd(x, b0, acc.v[R * NV]);
  if constexpr (NV > 1) acc.v[R * NV + 1] = hn::MulAdd(x, b1, acc.v[R * NV + 1]);
  if constexpr (NV > 2) acc.v[R * NV + 2] = hn::MulAdd(x, b2, acc.v[R * NV + 2]);
  if constexpr (NV > 3) acc.v[R * NV + 3] = hn::MulAdd(x, b3, acc.v[R * NV + 3]);
}

// A tile between two steps of k.
template <int MR, int NV, bool kByColumns>
struct Progress {
  HWY_INLINE Progress() {}
  Sums<MR, NV> acc;
  RowPointers<MR, kByColumns> a;
  const float* b;
  float* packed;
};

// The first n floats of a vector, n < kLanes; nothing beyond them is touched.
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
HWY_INLINE V load_first(const float* from, int64_t n) {
  return hn::MaskedLoad(hn::FirstN(D(), static_cast<size_t>(n)), D(), from);
}
HWY_INLINE void store_first(V v, float* to, int64_t n) {
  hn::BlendedStore(v, hn::FirstN(D(), static_cast<size_t>(n)), D(), to);
}
#else
HWY_INLINE V load_first(const float* from, int64_t n) {
  HWY_ALIGN float part[kLanes] = {};
  std::copy_n(from, n, part);
  return hn::Load(D(), part);
}
HWY_INLINE void store_first(V v, float* to, int64_t n) {
  HWY_ALIGN float part[kLanes];
  hn::Store(v, D(), part);
  std::copy_n(part, n, to);
}
#endif

// c = sum + start for vector number I of a tile; at the right edge of C the last of a row is not a whole one.
template <size_t I, int NV, bool kAtEdge>
HWY_INLINE void finish_vector(const GemmTiles& t, V sum) {
  const D d;
  constexpr int64_t kRow = I / NV, kColumn = (I % NV) * kLanes;
  float* c = t.c + kRow * t.c_stride + kColumn;
  if constexpr (kAtEdge && I % NV == NV - 1) {
    if (t.start) sum = hn::Add(sum, load_first(t.start + kRow * t.start_stride + kColumn, t.edge));
    store_first(sum, c, t.edge);
  } else {
    if (t.start) sum = hn::Add(sum, hn::LoadU(d, t.start + kRow * t.start_stride + kColumn));
    hn::StoreU(sum, d, c);
  }
}

// What is done with B in the shade of the multiplications.
enum class OnTheWay {
  nothing,
  pack_b,   // it is read where it lies, and a packed copy is left in t.packed
  fetch_b,  // it is read where it lies, far away
};

template <OnTheWay kOnTheWay, int MR, int NV, bool kByColumns, size_t... R, size_t... G>
HWY_INLINE void step_k(const GemmTiles& t, Progress<MR, NV, kByColumns>& p, std::index_sequence<R...>,
                       std::index_sequence<G...>) {
  const D d;
  const V b0 = hn::LoadU(d, p.b), b1 = NV > 1 ? hn::LoadU(d, p.b + kLanes) : b0;
  const V b2 = NV > 2 ? hn::LoadU(d, p.b + 2 * kLanes) : b0, b3 = NV > 3 ? hn::LoadU(d, p.b + 3 * kLanes) : b0;
  if constexpr (kOnTheWay == OnTheWay::fetch_b) {
    constexpr int kRowsAhead = 8;
    for (int line = 0; line < NV * kLanes; line += kLineFloats) hwy::Prefetch(p.b + kRowsAhead * t.b_stride + line);
  }
  if constexpr (kOnTheWay == OnTheWay::pack_b) {
    hn::Store(b0, d, p.packed);
    hn::Store(b1, d, p.packed + kLanes);
    if constexpr (NV > 2) hn::Store(b2, d, p.packed + 2 * kLanes);
    if constexpr (NV > 3) hn::Store(b3, d, p.packed + 3 * kLanes);
    p.packed += kWidth;
  }
  (multiply_row<static_cast<int>(R)>(p.acc, p.a, b0, b1, b2, b3), ...);
  p.b += t.b_stride;
  ((p.a.p[G] += kByColumns ? t.a_stride : 1), ...);
}

// With 16 registers, the sums and operands of more than one step at a time do not fit.
constexpr int kUnrolled = kManyRegisters ? 4 : 1;

template <OnTheWay kOnTheWay, class P, class R, class G>
HWY_INLINE void unrolled_steps(const GemmTiles& t, P& p, R rows, G groups) {
  step_k<kOnTheWay>(t, p, rows, groups);
  if constexpr (kUnrolled == 4) {
    step_k<kOnTheWay>(t, p, rows, groups);
    step_k<kOnTheWay>(t, p, rows, groups);
    step_k<kOnTheWay>(t, p, rows, groups);
  }
}

template <int MR, int NV, bool kByColumns, OnTheWay kOnTheWay, size_t... G, size_t... I>
HWY_INLINE void run_tile(const GemmTiles& t, const float* fetch_from, int64_t fetch_units,
                         std::index_sequence<G...> groups, std::index_sequence<I...>) {
  const D d;
  const auto rows = std::make_index_sequence<MR>();
  Progress<MR, NV, kByColumns> p;
  ((p.acc.v[I] = hn::Zero(d)), ...);
  p.a.stride = t.a_stride;
  ((p.a.p[G] = t.a + 3 * G * t.a_stride), ...);
  p.b = t.b;
  p.packed = t.packed;
  ((hwy::Prefetch(t.c + (I / NV) * t.c_stride + (I % NV) * kLanes)), ...);
  int64_t k = t.K;
  const int64_t fetch_step = t.fetch.step;
  for (; k >= kFetchSteps; k -= kFetchSteps, fetch_from += t.fetch.next) {
    const float* fetch = fetch_from;
    for (int u = 0; u < kFetchSteps; u += kUnrolled) {
      if (u < fetch_units) {
        for (int s = 0; s < kUnrolled; ++s, fetch += fetch_step)
          for (int line = 0; line < NV * kLanes; line += kLineFloats) hwy::Prefetch(fetch + line);
      }
      unrolled_steps<kOnTheWay>(t, p, rows, groups);
    }
  }
  for (; k >= kUnrolled; k -= kUnrolled) unrolled_steps<kOnTheWay>(t, p, rows, groups);
  for (; k > 0; --k) step_k<kOnTheWay>(t, p, rows, groups);
  if (t.edge > 0)
    (finish_vector<I, NV, true>(t, p.acc.v[I]), ...);
  else
    (finish_vector<I, NV, false>(t, p.acc.v[I]), ...);
}

template <int MR, int NV, bool kByColumns, OnTheWay kOnTheWay = OnTheWay::nothing>
void tiles(const GemmTiles& given) {
  GemmTiles t = given;
  for (int64_t n = 0; n < given.count; ++n) {
    run_tile<MR, NV, kByColumns, kOnTheWay>(t, t.fetch.from, n < t.fetch.tiles ? t.fetch.units : 0,
                                            std::make_index_sequence<RowPointers<MR, kByColumns>::kGroups>(),
                                            std::make_index_sequence<MR * NV>());
    t.a += t.a_next;
    t.b += t.b_next;
    t.c += t.c_next;
    if (t.start) t.start += t.start_next;
    t.fetch.from += t.fetch.ahead;
  }
}

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

// out[j] = element k + j of every row, j = 0..3, one lane a row.
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

// MR rows of A against four rows of B.
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
    std::memcpy(dst, src, static_cast<size_t>(cols) * sizeof(float));
    std::fill(dst + cols, dst + kWidth, 0.0f);
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
    case Activation::none:
      return finish_with(f, [](V x) HWY_ATTR { return x; });
    case Activation::relu:
      return finish_with(f, [d](V x) HWY_ATTR { return math::relu_v(d, x); });
    case Activation::gelu:
      return finish_with(f, [d](V x) HWY_ATTR { return math::gelu_v(d, x); });
    case Activation::tanh:
      return finish_with(f, [d](V x) HWY_ATTR { return math::tanh_v(d, x); });
    case Activation::sigmoid:
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
