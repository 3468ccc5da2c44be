// The register-blocked tiles of gemm, per SIMD target.
#if defined(QKV_KERNELS_GEMM_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_GEMM_TILES_INL_H_
#undef QKV_KERNELS_GEMM_TILES_INL_H_
#else
#define QKV_KERNELS_GEMM_TILES_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <utility>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "qkv/kernels/gemm/simd_table.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels::detail {
namespace HWY_NAMESPACE {
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

// What is done with B while the multiplications run.
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

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels::detail
HWY_AFTER_NAMESPACE();
#endif
