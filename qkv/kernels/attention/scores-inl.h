// From raw products to biased scores, per SIMD target: softcap, additive bias, masks, ranges, additive scores.
#if defined(QKV_KERNELS_ATTENTION_SCORES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_ATTENTION_SCORES_INL_H_
#undef QKV_KERNELS_ATTENTION_SCORES_INL_H_
#else
#define QKV_KERNELS_ATTENTION_SCORES_INL_H_
#endif

#include "qkv/kernels/attention/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

// Calls fn(pointer to z, v, j) for every vector of the tile that some lane sees.
template <class Fn>
HWY_INLINE void each_seen(const LaneRanges& l, const KeyTile& k, float* z, Fn&& fn) {
  for (int v = 0; v < l.vectors; ++v) {
    const int64_t last = k.last(l, v);
    for (int64_t j = k.first(l, v); j < last; ++j) fn(z + (j - k.jb) * kTileQ + v * kLanes, v, j);
  }
}

// One row of bias and mask: unit · bias, or -inf where the key is hidden.
HWY_INLINE void extra_row(const Scorer& s, int r, const KeyTile& k, float* to) {
  const ScoreArgs<float>& rule = s.in->rule;
  const int64_t b = s.q->seq.b, h = s.q->head[r], i = s.q->query[r];
  const int64_t end = std::min<int64_t>(k.je, s.q->hi[r]), n = k.je - k.jb;
  int64_t filled = 0;
  if (rule.bias.data) {
    const float* bias = rule.bias.row(b, h, i);
    for (int64_t j = k.jb; j < end; ++j, ++filled) {
      const float x = bias[j * rule.bias.k_stride];
      to[filled] = x > kNegInf ? x * s.unit : kNegInf;
    }
  } else if (end > k.jb) {
    filled = end - k.jb;
    std::fill(to, to + filled, 0.0f);
  }
  std::fill(to + std::max<int64_t>(filled, 0), to + n, kNegInf);
  if (rule.mask.data) {
    const uint8_t* mask = rule.mask.row(b, h, i);
    for (int64_t j = 0; j < filled; ++j) to[j] = mask[(k.jb + j) * rule.mask.k_stride] ? to[j] : kNegInf;
  }
}

// A bias alone, of rows that see all keys of the tile, is transposed as it lies in memory. Returns whether it could be
// done so: not if an entry is -inf, which hides its key.
HWY_INLINE bool transpose_bias(const Scorer& s, const KeyTile& k) {
  const ScoreArray<float>& bias = s.in->rule.bias;
  const QueryTile& q = *s.q;
  if (s.in->rule.mask.data || bias.k_stride != 1 || q.any_empty) return false;
  for (int v = 0; v < s.lanes.vectors; ++v) {
    if (s.lanes.all_lo[v] > k.jb || s.lanes.all_hi[v] < k.je) return false;
  }
  RowPointers rows;
  std::fill(s.extra_rows, s.extra_rows + (k.je - k.jb), 0.0f);
  std::fill(rows.row + q.rows, rows.row + s.lanes.vectors * kLanes, s.extra_rows);
  for (int r = 0; r < q.rows; ++r) rows.row[r] = bias.row(q.seq.b, q.head[r], q.query[r]) + k.jb;
  return pack_transposed(rows, s.lanes.vectors, k.je - k.jb, s.unit, s.extra);
}

// extra[key][query] for the tile. Returns whether it may hide keys.
inline HWY_NOINLINE bool make_extra(const Scorer& s, const KeyTile& k) {
  if (transpose_bias(s, k)) return false;
  RowPointers rows;
  const int lanes = s.lanes.vectors * kLanes;
  for (int r = 0; r < lanes; ++r) {
    rows.row[r] = s.extra_rows + r * kTileK;
    if (r < s.q->rows && !s.q->empty(r)) {
      extra_row(s, r, k, s.extra_rows + r * kTileK);
    } else {
      std::fill(s.extra_rows + r * kTileK, s.extra_rows + r * kTileK + (k.je - k.jb), 0.0f);
    }
  }
  pack_transposed(rows, s.lanes.vectors, k.je - k.jb, 1.0f, s.extra);
  return true;
}

// Additive scores scale · Σ_d w_d tanh(q_d + k_d); here vectors run along d, so that one query costs one query.
inline HWY_NOINLINE void additive_scores(const Scorer& s, const KeyTile& k, float* z) {
  const F32 d;
  const int64_t D = s.in->dims.D, whole = D / kLanes * kLanes;
  const float* w = s.in->rule.additive;
  const float factor = s.q_scale();
  std::fill(z, z + (k.je - k.jb) * kTileQ, kNegInf);
  for (int r = 0; r < s.q->rows; ++r) {
    const float* q = s.in->q.row(s.q->seq.b, s.q->head[r], s.q->seq.q_begin + s.q->query[r]);
    const int64_t last = std::min<int64_t>(k.je, s.q->hi[r]);
    for (int64_t j = std::max<int64_t>(k.jb, s.q->lo[r]); j < last; ++j) {
      const float* key = s.in->k.row(s.q->seq.b, s.q->kv, s.q->seq.k_begin + j);
      Vec sum = hn::Zero(d);
      for (int64_t c = 0; c < whole; c += kLanes) {
        const Vec t = tanh(hn::Add(hn::LoadU(d, q + c), hn::LoadU(d, key + c)));
        sum = hn::MulAdd(t, hn::LoadU(d, w + c), sum);
      }
      float total = hn::GetLane(hn::SumOfLanes(d, sum));
      for (int64_t c = whole; c < D; ++c) total += w[c] * hn::GetLane(tanh(hn::Set(d, q[c] + key[c])));
      z[(j - k.jb) * kTileQ + r] = factor * total;
    }
  }
}

// Lanes that key j is out of range for.
HWY_INLINE hn::Mask<F32> out_of_range(const QueryTile& q, int v, int64_t j) {
  const I32 di;
  const IntVec key = hn::Set(di, static_cast<int32_t>(j));
  const auto before = hn::Lt(key, hn::LoadU(di, q.lo + v * kLanes));
  const auto past = hn::Gt(key, hn::Sub(hn::LoadU(di, q.hi + v * kLanes), hn::Set(di, 1)));
  return hn::RebindMask(F32(), hn::Or(before, past));
}

// The scores before softcap, bias and masks.
HWY_INLINE void raw_scores(const Scorer& s, const KeyTile& k, float* z) {
  if (s.in->rule.additive) {
    additive_scores(s, k, z);
  } else {
    dot_scores(s, k, s.in->k, s.in->dims.D, s.packed_q, z);
  }
}

// From raw to biased scores in z[(j - jb) * kTileQ + lane], -inf where hidden; keys that no lane of a vector sees
// are left unset. With softcap, `slope`, if given, receives d capped / d raw. A tile that turns out to hide nothing is
// no longer ragged.
inline HWY_NOINLINE void bias_scores(const Scorer& s, KeyTile& k, float* z, float* slope) {
  const F32 d;
  const ScoreArgs<float>& rule = s.in->rule;
  const LaneRanges& l = s.lanes;
  if (rule.softcap > 0) {
    const Vec cap = hn::Set(d, rule.softcap * s.unit), one = hn::Set(d, 1.0f);
    each_seen(l, k, z, [&](float* at, int, int64_t) HWY_ATTR {
      const Vec t = tanh(hn::Load(d, at));
      hn::Store(hn::Mul(cap, t), d, at);
      if (slope) hn::Store(hn::NegMulAdd(t, t, one), d, slope + (at - z));
    });
  }
  if (s.extra) {
    k.ragged = make_extra(s, k);
    each_seen(l, k, z, [&](float* at, int, int64_t) HWY_ATTR {
      const Vec extra = hn::Load(d, s.extra + (at - z));
      const auto hidden = hn::Eq(extra, hn::Set(d, kNegInf));
      hn::Store(hn::IfThenElse(hidden, extra, hn::Add(hn::Load(d, at), extra)), d, at);
    });
  }
  if (!k.ragged) return;
  for (int v = 0; v < l.vectors; ++v) {  // keys before and past those that every lane sees
    const int64_t first = k.first(l, v), last = k.last(l, v);
    const auto hide = [&](int64_t from, int64_t to) HWY_ATTR {
      for (int64_t j = from; j < to; ++j) {
        float* at = z + (j - k.jb) * kTileQ + v * kLanes;
        hn::Store(hn::IfThenElse(out_of_range(*s.q, v, j), hn::Set(d, kNegInf), hn::Load(d, at)), d, at);
      }
    };
    const int64_t low = std::clamp<int64_t>(l.all_lo[v], first, last);
    hide(first, low);
    hide(std::clamp<int64_t>(l.all_hi[v], low, last), last);
  }
}

HWY_INLINE void biased_scores(const Scorer& s, KeyTile& k, float* z, float* slope) {
  raw_scores(s, k, z);
  bias_scores(s, k, z, slope);
}

// Entries outside the keys a vector sees.
HWY_INLINE void fill_unseen(const LaneRanges& l, const KeyTile& k, float value, float* z) {
  const F32 d;
  const Vec fill = hn::Set(d, value);
  for (int v = 0; v < l.vectors; ++v) {
    const int64_t first = k.first(l, v), last = k.last(l, v);
    for (int64_t j = k.jb; j < first; ++j) hn::Store(fill, d, z + (j - k.jb) * kTileQ + v * kLanes);
    for (int64_t j = last; j < k.je; ++j) hn::Store(fill, d, z + (j - k.jb) * kTileQ + v * kLanes);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
