// Softmax attention backward in one pass: P is rebuilt from lse, and dV, dK, dQ are summed tile by tile.
#include <cmath>
#include <utility>

#include "qkv/base/parallel.h"
#include "qkv/kernels/attention/query_tiles.h"
#include "qkv/kernels/attention/variants.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/attention/backward.cc"
#include "hwy/foreach_target.h"
#include "qkv/kernels/attention/grads-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {
namespace {

// One vector of queries: z becomes the weights P (after dropout), dp becomes dZ = P ∘ (dP - delta).
template <bool kDropout, bool kHidden>
HWY_INLINE void softmax_column(const GradWorker& w, const KeyTile& k, int v) {
  const F32 d;
  const LaneRanges& l = w.scorer.lanes;
  const Vec lse = hn::Load(d, w.lse + v * kLanes), delta = hn::Load(d, w.delta + v * kLanes);
  const auto keys = hn::Load(U32(), w.dropout_keys + v * kLanes);
  const Vec keep_scale = hn::Set(d, w.in.rule.keep_scale);
  const uint32_t threshold = w.in.rule.dropout_threshold;
  const auto step = [&](int64_t j, hn::Mask<F32> kept) HWY_ATTR {
    float* z = w.z + (j - k.jb) * kTileQ + v * kLanes;
    float* dp = w.dp + (j - k.jb) * kTileQ + v * kLanes;
    const Vec score = hn::Load(d, z);
    Vec p = exp2(hn::Sub(score, lse));
    Vec dz;
    if constexpr (kDropout) {
      const Vec dropped = hn::IfThenElseZero(kept, hn::Mul(p, keep_scale));
      dz = hn::NegMulAdd(p, delta, hn::Mul(dropped, hn::Load(d, dp)));
      p = dropped;
    } else {
      dz = hn::Mul(p, hn::Sub(hn::Load(d, dp), delta));
    }
    if constexpr (kHidden) {  // whatever a hidden key holds must not come through
      const auto hidden = hn::Eq(score, hn::Set(d, kNegInf));
      p = hn::IfThenZeroElse(hidden, p);
      dz = hn::IfThenZeroElse(hidden, dz);
    }
    hn::Store(p, d, z);
    hn::Store(dz, d, dp);
  };
  const auto kept = [&](int64_t j) HWY_ATTR { return kDropout ? kept_pair(keys, j, threshold) : KeptPair(); };
  const int64_t last = k.last(l, v);
  int64_t j = k.first(l, v);
  if (j < last && j % 2 != 0) {
    step(j, kept(j).odd);
    ++j;
  }
  for (; j + 2 <= last; j += 2) {
    const KeptPair pair = kept(j);
    step(j, pair.even);
    step(j + 1, pair.odd);
  }
  if (j < last) step(j, kept(j).even);
}

HWY_NOINLINE void softmax_backward(const GradWorker& w, const KeyTile& k) {
  for (int v = 0; v < w.scorer.lanes.vectors; ++v) {
    if (w.in.rule.dropout_threshold) {
      k.ragged ? softmax_column<true, true>(w, k, v) : softmax_column<true, false>(w, k, v);
    } else {
      k.ragged ? softmax_column<false, true>(w, k, v) : softmax_column<false, false>(w, k, v);
    }
  }
}

// Every query tile of one (sequence, key/value head) against the keys of one chunk.
void run_chunk(GradWorker& w, const GradChunk& chunk) {
  QueryTile& tile = w.tile;
  w.open(chunk);
  const int64_t tiles = tile_count(w.in.dims, chunk.seq), keys = tile_keys(w.in.dims);
  for (int64_t t = 0; t < tiles; ++t) {
    make_tile(w.in, chunk.seq, chunk.kv, t, tile);
    w.start(tile, chunk);
    const int64_t begin = std::max(tile.begin, chunk.begin), end = std::min(tile.end, chunk.end);
    bool first = true;
    if (begin < end) w.zero_until(begin);
    for (int64_t at = begin / keys * keys; begin < end && at < end; at += keys, first = false) {
      KeyTile k = key_tile(w.in, w.scorer.lanes, std::max(at, begin), std::min(at + keys, end));
      biased_scores(w.scorer, k, w.z, w.slope);                             // Zᵀ = K Qᵀ, in log2 units
      dot_scores(w.scorer, k, w.in.v, w.in.dims.Dv, w.packed_d_out, w.dp);  // dPᵀ = V dOᵀ
      softmax_backward(w, k);
      w.add_grads(k, first);
    }
    if (begin < end) w.set_end = std::max(w.set_end, end);
    w.finish_queries(chunk, first);
  }
  w.close(chunk);
}

void flash_backward(const AttentionInputs<float>& in, const AttentionGrads<float>& grads) {
  run_grad_chunks(in, grads, kLog2e, false,
                  [&](GradWorker& w, const GradChunk& chunk) HWY_ATTR { run_chunk(w, chunk); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {
HWY_EXPORT(flash_backward);
void flash_backward(const AttentionInputs<float>& in, const AttentionGrads<float>& grads) {
  HWY_DYNAMIC_DISPATCH(flash_backward)(in, grads);
}
}  // namespace qkv::kernels
#endif
