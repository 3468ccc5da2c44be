// Weighted sums of rows under a tile of weights, per SIMD target: over keys (PV, dQ) and over queries (dV, dK).
#if defined(QKV_KERNELS_ATTENTION_VALUES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_ATTENTION_VALUES_INL_H_
#undef QKV_KERNELS_ATTENTION_VALUES_INL_H_
#else
#define QKV_KERNELS_ATTENTION_VALUES_INL_H_
#endif

#include "qkv/kernels/attention/scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

// C[r] = init(r) + Σ_j w[j, r] · B[j] over the keys of a tile, for the tile's query rows: PV, and dQ = dS K.
struct ColumnSum {
  const float* w = nullptr;  // [keys][kTileQ]
  PaddedRows b{nullptr, 0};  // [keys][cols], cols padded to whole vectors
  int64_t cols = 0;
  float* c = nullptr;  // [rows][c_stride]
  int64_t c_stride = 0;
  bool first = false;             // init = 0, else C · before
  const float* before = nullptr;  // [kTileQ]
  const float* after = nullptr;   // [kTileQ] factor of the result
};

// to[c] = from[c] · factor; whole vectors may be read from `from`.
HWY_INLINE void scale_row(const float* from, int64_t cols, float factor, float* to) {
  const F32 d;
  const Vec scale = hn::Set(d, factor);
  int64_t c = 0;
  for (; c + kLanes <= cols; c += kLanes) hn::StoreU(hn::Mul(hn::Load(d, from + c), scale), d, to + c);
  for (; c < cols; ++c) to[c] = from[c] * factor;
}

// c += w · b, skipped when w is zero: where b holds NaN or Inf, 0 · b would not be 0.
HWY_INLINE void add_scaled(float w, const float* b, int64_t cols, float* c) {
  const F32 d;
  if (w == 0) return;
  for (int64_t x = 0; x < cols; x += kLanes) {
    hn::StoreU(hn::MulAdd(hn::Set(d, w), hn::LoadU(d, b + x), hn::LoadU(d, c + x)), d, c + x);
  }
}

inline HWY_NOINLINE void column_sum_by_element(const ColumnSum& s, const QueryTile& q, const KeyTile& k) {
  const int64_t cols = padded(s.cols);
  for (int r = 0; r < q.rows; ++r) {
    float* c = s.c + r * s.c_stride;
    for (int64_t x = 0; x < cols; ++x) c[x] = s.first ? 0.0f : s.before ? c[x] * s.before[r] : c[x];
    for (int64_t j = 0; j < k.je - k.jb; ++j) add_scaled(s.w[j * kTileQ + r], s.b.data + j * s.b.stride, cols, c);
    for (int64_t x = 0; s.after && x < cols; ++x) c[x] *= s.after[r];
  }
}

inline HWY_NOINLINE void column_sum(const ColumnSum& s, const QueryTile& q, const KeyTile& k) {
  Product p;
  p.a = s.w;
  p.b = s.b.data;
  p.b_stride = s.b.stride;
  p.K = k.je - k.jb;
  p.c = s.c;
  p.c_stride = s.c_stride;
  p.accumulate = !s.first;
  p.before = s.before;
  p.after = s.after;
  const int vectors = static_cast<int>(padded(s.cols) / kLanes);
  if (!k.ragged) {
    // Half a tile of keys at a time, so that its weights and rows of B stay in the first-level cache.
    constexpr int64_t kHalf = kTileK / 2;
    for (int64_t j = 0; j < k.je - k.jb; j += kHalf) {
      Product part = p;
      part.a += j * kTileQ;
      part.b += j * p.b_stride;
      part.K = std::min(kHalf, k.je - k.jb - j);
      if (j > 0) {
        part.accumulate = true;
        part.before = nullptr;
      }
      if (j + kHalf < k.je - k.jb) part.after = nullptr;
      product<AccessA::columns>(part, q.rows, vectors);
    }
    return;
  }
  if (!all_finite(s.b.data, s.b.stride, k.je - k.jb, s.cols)) return column_sum_by_element(s, q, k);
  // Each block of rows takes only the keys that one of its rows sees; the others have weight zero.
  const int block = block_rows(vectors);
  for (int r = 0, rows = 0; r < q.rows; r += rows) {
    const int left = q.rows - r;
    rows = in_halves(block, left) ? left / 2 : std::min(block, left);
    int64_t lo = k.je, hi = k.jb;
    for (int i = r; i < r + rows; ++i) {
      if (q.empty(i)) continue;
      lo = std::min<int64_t>(lo, q.lo[i]);
      hi = std::max<int64_t>(hi, q.hi[i]);
    }
    lo = std::max(lo, k.jb);
    hi = std::max(lo, std::min(hi, k.je));
    if (lo == hi && !s.first && !s.after) continue;
    Product part = p;
    part.a += (lo - k.jb) * kTileQ + r;
    part.b += (lo - k.jb) * s.b.stride;
    part.K = hi - lo;
    part.c += r * s.c_stride;
    if (part.before) part.before += r;
    if (part.after) part.after += r;
    product<AccessA::columns>(part, rows, vectors);
  }
}

// C[j] += Σ_r w[j, r] · B[r] over the tile's query rows, for its keys: dV = Pᵀ dO and dK = dSᵀ Q.
struct RowSum {
  const float* w = nullptr;  // [keys][kTileQ]
  PaddedRows b{nullptr, 0};  // [rows][cols], cols padded to whole vectors
  bool finite = true;        // whether b is
  int64_t cols = 0;
  float* c = nullptr;  // row of key jb
  int64_t c_stride = 0;
  int64_t set_end = 0;  // from this key on, C is not set yet: = instead of +=
};

inline HWY_NOINLINE void row_sum(const RowSum& s, const QueryTile& q, const LaneRanges& l, const KeyTile& k) {
  const int64_t width = padded(s.cols);
  const int vectors = static_cast<int>(width / kLanes);
  Product p;
  p.b_stride = s.b.stride;
  p.c_stride = s.c_stride;
  for (int64_t j = k.jb; j < k.je;) {
    const bool first = j >= s.set_end;
    const Segment part = next_segment(l, j, first ? k.je : std::min(k.je, s.set_end), 0, l.vectors);
    const float* w = s.w + (j - k.jb) * kTileQ;
    const int64_t keys = part.end - j, begin = part.from * kLanes, end = std::min(part.to * kLanes, q.rows);
    p.c = s.c + (j - k.jb) * s.c_stride;
    j = part.end;
    if (k.ragged && !s.finite) {
      for (int64_t y = 0; y < keys; ++y) {
        float* c = p.c + y * s.c_stride;
        if (first) std::fill(c, c + width, 0.0f);
        for (int64_t r = begin; r < end; ++r) add_scaled(w[y * kTileQ + r], s.b.data + r * s.b.stride, width, c);
      }
      continue;
    }
    p.a = w + begin;
    p.b = s.b.data + begin * s.b.stride;
    p.K = end - begin;
    p.accumulate = !first;
    if (p.K > 0 || first) product<AccessA::tile>(p, keys, vectors);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
