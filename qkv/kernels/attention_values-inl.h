// Weighted sums of value rows, per SIMD target.
#if defined(QKV_KERNELS_ATTENTION_VALUES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_ATTENTION_VALUES_INL_H_
#undef QKV_KERNELS_ATTENTION_VALUES_INL_H_
#else
#define QKV_KERNELS_ATTENTION_VALUES_INL_H_
#endif

#include "qkv/kernels/attention_scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

// C[r] = init(r) + Σ_j w[j, r] · B[j] over the keys of a tile, for the tile's query rows: PV, and dQ = dS K.
struct ColumnSum {
  const float* w = nullptr;  // [keys][kTileQ]
  Rows b{nullptr, 0};        // [keys][cols], cols padded to whole vectors
  int64_t cols = 0;
  float* c = nullptr;  // [rows][c_stride]
  int64_t c_stride = 0;
  bool first = false;             // init = 0, else C · before
  const float* before = nullptr;  // [kTileQ]
  const float* after = nullptr;   // [kTileQ] factor of the result
};

// Where 0 · NaN would be NaN: only the weights that are not zero take part.
HWY_NOINLINE void column_sum_by_element(const ColumnSum& s, const QueryTile& q, const KeyTile& k) {
  for (int r = 0; r < q.rows; ++r) {
    float* c = s.c + r * s.c_stride;
    for (int64_t x = 0; x < s.cols; ++x) c[x] = s.first ? 0.0f : s.before ? c[x] * s.before[r] : c[x];
    for (int64_t j = 0; j < k.je - k.jb; ++j) {
      const float w = s.w[j * kTileQ + r];
      if (w == 0) continue;
      for (int64_t x = 0; x < s.cols; ++x)
        c[x] = hwy::HWY_NAMESPACE::GetLane(
            hn::MulAdd(hn::Set(F32(), w), hn::Set(F32(), s.b.data[j * s.b.stride + x]), hn::Set(F32(), c[x])));
    }
    for (int64_t x = 0; s.after && x < s.cols; ++x) c[x] *= s.after[r];
  }
}

HWY_NOINLINE void column_sum(const ColumnSum& s, const QueryTile& q, const KeyTile& k) {
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
  if (!k.ragged) return product<AccessA::columns>(p, q.rows, vectors);
  if (!all_finite(s.b.data, s.b.stride, k.je - k.jb, s.cols)) return column_sum_by_element(s, q, k);
  // Each block of rows takes only the keys that one of its rows sees; the others have weight zero.
  for (int r = 0; r < q.rows; r += kRows) {
    const int rows = std::min(kRows, q.rows - r);
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

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
