// Score tiles, per SIMD target: Zᵀ[key, query] from packed queries, with softcap, bias and masks applied.
#if defined(QKV_KERNELS_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_ATTENTION_TILE_INL_H_
#undef QKV_KERNELS_ATTENTION_TILE_INL_H_
#else
#define QKV_KERNELS_ATTENTION_TILE_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "qkv/kernels/attention/products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

constexpr float kNegInf = -std::numeric_limits<float>::infinity();
constexpr int kMaxVectors = kTileQ / kLanes;

HWY_INLINE int64_t padded(int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

// Row pointers of a tile's queries in one tensor, whole vectors of them; lanes without a row, and empty rows, read
// `zeros`.
struct RowPointers {
  const float* row[kTileQ];
};
HWY_INLINE RowPointers row_pointers(const QueryTile& q, const Strided<const float>& from, const float* zeros) {
  RowPointers p;
  const int lanes = (q.rows + kLanes - 1) / kLanes * kLanes;
  const float* first = from.row(q.seq.b, q.head[0], q.seq.q_begin + q.query[0]);
  if (q.one_head) {
    for (int r = 0; r < q.rows; ++r) p.row[r] = first + r * from.l_stride;
  } else {
    for (int r = 0; r < q.rows; ++r) p.row[r] = from.row(q.seq.b, q.head[r], q.seq.q_begin + q.query[r]);
  }
  for (int r = 0; q.any_empty && r < q.rows; ++r) p.row[r] = q.empty(r) ? zeros : p.row[r];
  std::fill(p.row + q.rows, p.row + lanes, zeros);
  return p;
}

#if HWY_TARGET != HWY_SCALAR
// Four floats at `at` of rows 0, 4, 8, … next to each other: block b of the vector holds row 4b.
template <class D>
HWY_INLINE hn::Vec<D> every_fourth_row(D d, const float* const* rows, int64_t at) {
  if constexpr (hn::MaxLanes(D()) > 4) {
    const hn::Half<D> half;
    constexpr size_t kHalf = hn::MaxLanes(half);
    return hn::Combine(d, every_fourth_row(half, rows + kHalf, at), every_fourth_row(half, rows, at));
  } else {
    return hn::LoadU(d, rows[0] + at);
  }
}
#endif

// Four columns of kLanes rows, transposed: out[c] has column c of every row.
HWY_INLINE void transpose4(const float* const* rows, int64_t at, Vec out[4]) {
  const F32 d;
#if HWY_TARGET == HWY_SCALAR
  for (int c = 0; c < 4; ++c) out[c] = hn::Set(d, rows[0][at + c]);
#else
  // With row 4b + r in block b of vector r, transposing 4 × 4 inside each block leaves lanes in row order.
  const Vec a = every_fourth_row(d, rows, at), b = every_fourth_row(d, rows + 1, at);
  const Vec c = every_fourth_row(d, rows + 2, at), e = every_fourth_row(d, rows + 3, at);
  const hn::RepartitionToWide<F32> dw;
  const auto ab_low = hn::BitCast(dw, hn::InterleaveLower(d, a, b));
  const auto ab_high = hn::BitCast(dw, hn::InterleaveUpper(d, a, b));
  const auto ce_low = hn::BitCast(dw, hn::InterleaveLower(d, c, e));
  const auto ce_high = hn::BitCast(dw, hn::InterleaveUpper(d, c, e));
  out[0] = hn::BitCast(d, hn::InterleaveLower(dw, ab_low, ce_low));
  out[1] = hn::BitCast(d, hn::InterleaveUpper(dw, ab_low, ce_low));
  out[2] = hn::BitCast(d, hn::InterleaveLower(dw, ab_high, ce_high));
  out[3] = hn::BitCast(d, hn::InterleaveUpper(dw, ab_high, ce_high));
#endif
}

// out[c * kTileQ + r] = scale · rows[r][c]. Returns whether all are finite: 0 · Inf and 0 · NaN are NaN.
inline HWY_NOINLINE bool pack_transposed(const RowPointers& rows, int vectors, int64_t cols, float scale, float* out) {
  const F32 d;
  const Vec factor = hn::Set(d, scale);
  Vec zeros[2] = {hn::Zero(d), hn::Zero(d)};
  float rest = 0;
  for (int v = 0; v < vectors; ++v) {
    const float* const* block = rows.row + v * kLanes;
    int64_t c = 0;
    for (; c + 4 <= cols; c += 4) {
      Vec t[4];
      transpose4(block, c, t);
      QKV_UNROLL for (int i = 0; i < 4; ++i) hn::Store(hn::Mul(t[i], factor), d, out + (c + i) * kTileQ + v * kLanes);
      QKV_UNROLL for (int i = 0; i < 4; ++i) zeros[i % 2] = hn::MulAdd(t[i], hn::Zero(d), zeros[i % 2]);
    }
    for (; c < cols; ++c) {
      for (int r = 0; r < kLanes; ++r) {
        out[c * kTileQ + v * kLanes + r] = block[r][c] * scale;
        rest += block[r][c] * 0.0f;
      }
    }
  }
  return hn::AllTrue(d, hn::Eq(hn::Add(zeros[0], zeros[1]), hn::Zero(d))) && rest == 0;
}

// Copies rows next to each other, scaled and padded with zeros to `stride`, a whole number of vectors.
inline HWY_NOINLINE void pack_rows(const float* const* rows, int64_t count, int64_t cols, float scale, float* out) {
  const F32 d;
  const Vec factor = hn::Set(d, scale);
  const int64_t stride = padded(cols);
  for (int64_t r = 0; r < count; ++r, out += stride) {
    int64_t c = 0;
    for (; c + kLanes <= cols; c += kLanes) hn::Store(hn::Mul(hn::LoadU(d, rows[r] + c), factor), d, out + c);
    for (; c < stride; ++c) out[c] = c < cols ? rows[r][c] * scale : 0.0f;
  }
}

// Rows of k or v ready for whole vectors: in place when their width allows, else copied and padded.
struct PaddedRows {
  const float* data;
  int64_t stride;
};
HWY_INLINE PaddedRows vector_rows(const Strided<const float>& from, const QueryTile& q, int64_t jb, int64_t je,
                                  int64_t cols, float* room) {
  const float* first = from.row(q.seq.b, q.kv, q.seq.k_begin + jb);
  if (cols % kLanes == 0) return {first, from.l_stride};
  const int64_t stride = padded(cols);
  for (int64_t j = 0; j < je - jb; ++j) {
    std::memcpy(room + j * stride, first + j * from.l_stride, static_cast<size_t>(cols) * sizeof(float));
    std::fill(room + j * stride + cols, room + (j + 1) * stride, 0.0f);
  }
  return {room, stride};
}

// Two vectors at a time: 0 · Inf and 0 · NaN are NaN.
HWY_INLINE void add_zeros(const float* x, Vec& even, Vec& odd) {
  const F32 d;
  even = hn::MulAdd(hn::LoadU(d, x), hn::Zero(d), even);
  odd = hn::MulAdd(hn::LoadU(d, x + kLanes), hn::Zero(d), odd);
}
inline HWY_NOINLINE bool all_finite(const float* data, int64_t stride, int64_t count, int64_t cols) {
  const F32 d;
  if (stride == cols) {  // one long row
    cols *= count;
    count = 1;
  }
  Vec a = hn::Zero(d), b = hn::Zero(d), e = hn::Zero(d), f = hn::Zero(d);
  float rest = 0;
  for (const float* row = data; count > 0; --count, row += stride) {
    int64_t c = 0;
    for (; c + 4 * kLanes <= cols; c += 4 * kLanes) {
      add_zeros(row + c, a, b);
      add_zeros(row + c + 2 * kLanes, e, f);
    }
    for (; c + 2 * kLanes <= cols; c += 2 * kLanes) add_zeros(row + c, a, b);
    for (; c + kLanes <= cols; c += kLanes) e = hn::MulAdd(hn::LoadU(d, row + c), hn::Zero(d), e);
    for (; c < cols; ++c) rest += row[c] * 0.0f;
  }
  const Vec sum = hn::Add(hn::Add(a, b), hn::Add(e, f));
  return hn::AllTrue(d, hn::Eq(sum, hn::Zero(d))) && rest == 0;
}

// A query tile on this target: its vectors of lanes and which keys each vector needs.
struct LaneRanges {
  int vectors = 0;
  int32_t any_lo[kMaxVectors], any_hi[kMaxVectors];  // keys that some lane sees
  int32_t all_lo[kMaxVectors], all_hi[kMaxVectors];  // keys that every lane with keys sees
};
HWY_INLINE void set_lane_ranges(const QueryTile& q, LaneRanges& ranges) {
  const I32 d;
  const IntVec zero = hn::Zero(d), most = hn::Set(d, INT32_MAX);
  ranges.vectors = (q.rows + kLanes - 1) / kLanes;
  for (int v = 0; v < ranges.vectors; ++v) {
    const IntVec lo = hn::LoadU(d, q.lo + v * kLanes), hi = hn::LoadU(d, q.hi + v * kLanes);
    const auto none = hn::Eq(hi, zero);  // such lanes have lo == 0, too
    ranges.any_hi[v] = hn::GetLane(hn::MaxOfLanes(d, hi));
    ranges.any_lo[v] = std::min(hn::GetLane(hn::MinOfLanes(d, hn::IfThenElse(none, most, lo))), ranges.any_hi[v]);
    ranges.all_lo[v] = hn::GetLane(hn::MaxOfLanes(d, lo));
    ranges.all_hi[v] = hn::GetLane(hn::MinOfLanes(d, hn::IfThenElse(none, most, hi)));
  }
}

// Keys [jb, je) against the tile: what every part of a kernel needs to know about them.
struct KeyTile {
  int64_t jb = 0, je = 0;
  bool ragged = false;  // some entry is hidden, so the weights contain zeros
  int64_t first(const LaneRanges& l, int v) const { return std::min(je, std::max<int64_t>(jb, l.any_lo[v])); }
  int64_t last(const LaneRanges& l, int v) const { return std::max(first(l, v), std::min<int64_t>(je, l.any_hi[v])); }
};

HWY_INLINE KeyTile key_tile(const AttentionInputs<float>& in, const LaneRanges& l, int64_t jb, int64_t je) {
  KeyTile k{jb, je, in.rule.mask.data != nullptr || in.rule.bias.data != nullptr};
  for (int v = 0; v < l.vectors; ++v) k.ragged |= l.all_lo[v] > jb || l.all_hi[v] < je;
  return k;
}

// Keys [j, end) that the same vectors [from, to) see: within vectors [v0, v1), where neighbours overlap.
struct Segment {
  int64_t end;
  int from, to;
};
HWY_INLINE Segment next_segment(const LaneRanges& l, int64_t j, int64_t je, int v0, int v1) {
  Segment s{je, v0, v1};
  for (int v = v0; v < v1; ++v) {
    if (l.any_lo[v] > j) s.end = std::min<int64_t>(s.end, l.any_lo[v]);
    if (l.any_hi[v] > j) s.end = std::min<int64_t>(s.end, l.any_hi[v]);
  }
  while (s.from < s.to && (l.any_lo[s.from] > j || l.any_hi[s.from] <= j)) ++s.from;
  while (s.from < s.to && (l.any_lo[s.to - 1] > j || l.any_hi[s.to - 1] <= j)) --s.to;
  return s;
}

// Everything needed to make the score tiles of one query tile.
struct Scorer {
  const AttentionInputs<float>* in = nullptr;
  const QueryTile* q = nullptr;
  LaneRanges lanes;
  const float* packed_q = nullptr;  // [D][kTileQ], scaled
  float* extra = nullptr;           // [kTileK][kTileQ] bias and mask, null when the rule has neither
  float* extra_rows = nullptr;      // [kTileQ][kTileK] room to gather them
  bool few = false;                 // at most four rows per tile, and D whole vectors: few_scores
  float unit = 1;                   // scores are in units where e^z = 2^z: multiplied by log2(e) for softmax

  // The factor of q such that softcap, if any, needs only tanh, and plain scores come out in `unit`s.
  float q_scale() const {
    const ScoreArgs<float>& r = in->rule;
    return r.softcap > 0 ? r.scale / r.softcap : r.scale * unit;
  }
};

// Few queries against many keys are limited by memory reads, and processors read ahead only while rows are asked for in
// the order they lie in memory: so the rows to come are fetched in that order, this many ahead. Past the last row this
// asks for whatever comes next; mostly the keys of the next chunk or head.
constexpr int64_t kRowsAhead = 96;
HWY_INLINE void fetch_row(const float* row, int64_t cols) {
  for (int64_t c = 0; c < cols; c += 16) __builtin_prefetch(row + c, 0, 2);
}

// Vectors run along the keys here, transposed in registers. Every sum is the one dot_scores makes. K is whole vectors.
// Key j of query r goes to z[j * kStride + r]; with kStride = 1, whole vectors are written.
template <int kQueries, int64_t kStride = kTileQ>
HWY_INLINE void few_scores(const Product& p, int64_t keys, float* z) {
  const F32 d;
  constexpr int kVectors = kQueries == 1 ? 2 : 1;  // of keys at a time: one sum would wait for itself
  constexpr int kKeys = kVectors * kLanes;
  for (int64_t j = 0; j < keys; j += kKeys) {
    const float* rows[kKeys];
    for (int y = 0; y < kKeys; ++y) rows[y] = p.a + std::min(j + y, keys - 1) * p.a_stride;
    Vec sum[kVectors][kQueries];
    QKV_UNROLL for (int n = 0; n < kVectors; ++n) {
      QKV_UNROLL for (int r = 0; r < kQueries; ++r) sum[n][r] = hn::Zero(d);
    }
    const float* q = p.b;
    const float* ahead = p.a + (j + kRowsAhead) * p.a_stride;
    int64_t fetched = 0;
    for (int64_t c = 0; c < p.K; c += 4, q += 4 * kTileQ) {
      for (; fetched * p.K < (c + 4) * kKeys; ++fetched) fetch_row(ahead + fetched * p.a_stride, p.K);
      QKV_UNROLL for (int n = 0; n < kVectors; ++n) {
        Vec t[4];
        transpose4(rows + n * kLanes, c, t);
        QKV_UNROLL for (int i = 0; i < 4; ++i) {
          QKV_UNROLL for (int r = 0; r < kQueries; ++r) {
            sum[n][r] = hn::MulAdd(t[i], hn::Set(d, q[i * kTileQ + r]), sum[n][r]);
          }
        }
      }
    }
    QKV_UNROLL for (int n = 0; n < kVectors; ++n) {
      const int64_t first = j + n * kLanes;
      if (first >= keys) break;
      if constexpr (kStride == 1) {
        hn::Store(sum[n][0], d, z + first);
        continue;
      }
      alignas(64) float lane[kLanes];
      QKV_UNROLL for (int r = 0; r < kQueries; ++r) {
        hn::Store(sum[n][r], d, lane);
        for (int64_t y = 0; y < std::min<int64_t>(kLanes, keys - first); ++y) z[(first + y) * kStride + r] = lane[y];
      }
    }
  }
}

// Plain products: zᵀ = k · qᵀ for the vectors that need them; keys that no lane of a vector sees are skipped.
inline HWY_NOINLINE void dot_scores(const Scorer& s, const KeyTile& k, const Strided<const float>& keys, int64_t width,
                                    const float* packed, float* z) {
  Product p;
  p.a = keys.row(s.q->seq.b, s.q->kv, s.q->seq.k_begin + k.jb);
  p.a_stride = keys.l_stride;
  p.b_stride = p.c_stride = kTileQ;
  p.K = width;
  const LaneRanges& l = s.lanes;
  if (s.few) {
    p.b = packed;
    return s.q->rows == 1 ? few_scores<1>(p, k.je - k.jb, z) : few_scores<4>(p, k.je - k.jb, z);
  }
  for (int v0 = 0; v0 < l.vectors; v0 += kPanel) {
    const int v1 = std::min(v0 + kPanel, l.vectors);
    for (int64_t j = k.jb; j < k.je;) {
      const Segment part = next_segment(l, j, k.je, v0, v1);
      Product block = p;
      block.a += (j - k.jb) * p.a_stride;
      block.b = packed + part.from * kLanes;
      block.c = z + (j - k.jb) * kTileQ + part.from * kLanes;
      product<AccessA::rows>(block, part.end - j, part.to - part.from);
      j = part.end;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
