// Whole rows of scores for a tile of queries, per SIMD target: for normalisers that need them, statistics and maps.
#if defined(QKV_KERNELS_ATTENTION_WHOLE_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_ATTENTION_WHOLE_ROWS_INL_H_
#undef QKV_KERNELS_ATTENTION_WHOLE_ROWS_INL_H_
#else
#define QKV_KERNELS_ATTENTION_WHOLE_ROWS_INL_H_
#endif

#include <cmath>

#include "qkv/base/parallel.h"
#include "qkv/kernels/attention/normalisers-inl.h"
#include "qkv/kernels/dropout.h"
#include "qkv/kernels/scratch.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

// Scores are kept in log2 units for softmax only.
HWY_INLINE float unit_of(const ScoreArgs<float>& rule) {
  return rule.normaliser == Normaliser::softmax ? kLog2e : 1.0f;
}

// Calls fn(key tile, its first score) for the tiles of keys [begin, end), where row 0 of z is key `begin`.
template <class Fn>
HWY_INLINE void each_key_tile(const Scorer& s, int64_t begin, int64_t end, float* z, Fn&& fn) {
  for (int64_t at = begin / kTileK * kTileK; at < end; at += kTileK) {
    const KeyTile k = key_tile(*s.in, s.lanes, std::max(at, begin), std::min(at + kTileK, end));
    fn(k, z + (k.jb - begin) * kTileQ);
  }
}

// The biased scores of the tile's whole range, hidden ones -inf.
HWY_INLINE void row_scores(const Scorer& s, float* z, float* slope) {
  each_key_tile(s, s.q->begin, s.q->end, z, [&](KeyTile k, float* at) HWY_ATTR {
    biased_scores(s, k, at, slope ? slope + (at - z) : nullptr);
    fill_unseen(s.lanes, k, kNegInf, at);
  });
}

struct WholeRowsWorker {
  WholeRowsWorker(const AttentionInputs<float>& inputs, int64_t keys, Scratch& scratch) : in(inputs) {
    scorer.in = &in;
    scorer.unit = unit_of(in.rule);
    packed_q = scratch.floats(in.dims.D * kTileQ);
    scorer.packed_q = packed_q;
    if (in.rule.mask.data || in.rule.bias.data) {
      scorer.extra = scratch.floats(kTileK * kTileQ);
      scorer.extra_rows = scratch.floats(kTileK * kTileQ);
    }
    z = scratch.floats(std::max<int64_t>(keys, 1) * kTileQ);
    zeros = scratch.floats(in.dims.D);
    std::fill(zeros, zeros + in.dims.D, 0.0f);
  }

  void score(const QueryTile& tile) {
    q = &tile;
    scorer.q = q;
    set_lane_ranges(tile, scorer.lanes);
    if (!in.rule.additive) {
      pack_transposed(row_pointers(tile, in.q, zeros), scorer.lanes.vectors, in.dims.D, scorer.q_scale(), packed_q);
    }
    row_scores(scorer, z, nullptr);
  }
  Column column(int v) const { return {z + v * kLanes, q->end - q->begin}; }

  // z becomes weights before dropout; lse [kTileQ].
  void normalise(float* lse) const {
    const F32 d;
    for (int v = 0; v < scorer.lanes.vectors; ++v) {
      const Column c = column(v);
      const Level level = level_of(in.rule.normaliser, c);
      hn::Store(level.lse, d, lse + v * kLanes);
      with_normaliser(in.rule.normaliser, [&](auto n) HWY_ATTR {
        c.each([&](float* at, int64_t)
                   HWY_ATTR { hn::Store(weight<decltype(n)::value>(level, hn::Load(d, at), nullptr), d, at); });
      });
    }
  }

  const AttentionInputs<float>& in;
  const QueryTile* q = nullptr;
  Scorer scorer;
  float *packed_q = nullptr, *z = nullptr, *zeros = nullptr;
};

// Runs fn(worker, tile, scratch) for every tile of the call.
template <class Fn>
void run_row_tiles(const AttentionInputs<float>& in, Fn&& fn) {
  const TileList tiles(in);
  const int64_t most = std::max<int64_t>(1, tiles.size() / (4 * num_threads()));
  parallel_blocks(tiles.size(), std::min<int64_t>(most, 16), [&](int64_t begin, int64_t end) HWY_ATTR {
    Scratch scratch;
    WholeRowsWorker w(in, tiles.max_keys(), scratch);
    QueryTile tile;
    for (int64_t t = begin; t < end; ++t) {
      tiles.get(t, tile);
      Scratch own;
      w.score(tile);
      fn(w, own);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
