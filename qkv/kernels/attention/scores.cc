// Row statistics and chosen rows of the score matrix, recomputed from q and k: no n² memory.

#include "qkv/kernels/attention/query_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/attention/scores.cc"
#include "hwy/foreach_target.h"
#include "qkv/kernels/attention/whole_rows-inl.h"
#include "qkv/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {
namespace {

struct RowStats {
  alignas(64) float entropy[kTileQ];
  alignas(64) float max_weight[kTileQ];
  alignas(64) float argmax[kTileQ];
  alignas(64) float distance[kTileQ];
};

void column_stats(const WholeRowsWorker& w, int v, RowStats& s) {
  const F32 d;
  const QueryTile& q = *w.q;
  alignas(64) float own[kLanes];
  for (int r = 0; r < kLanes; ++r) {
    const int at = v * kLanes + r;
    own[r] = at < q.rows ? static_cast<float>(q.query[at] + q.seq.offset) : 0.0f;
  }
  const Vec position = hn::Load(d, own), tiny = hn::Set(d, 1e-37f);
  Vec entropy = hn::Zero(d), max = hn::Zero(d), argmax = hn::Set(d, -1.0f), distance = hn::Zero(d);
  w.column(v).each([&](const float* at, int64_t y) HWY_ATTR {
    const Vec p = hn::Load(d, at), j = hn::Set(d, static_cast<float>(q.begin + y));
    const auto higher = hn::Gt(p, max);
    max = hn::IfThenElse(higher, p, max);
    argmax = hn::IfThenElse(higher, j, argmax);
    entropy = hn::NegMulAdd(p, log_v(d, hn::Max(p, tiny)), entropy);
    distance = hn::MulAdd(p, hn::Abs(hn::Sub(position, j)), distance);
  });
  hn::Store(entropy, d, s.entropy + v * kLanes);
  hn::Store(max, d, s.max_weight + v * kLanes);
  hn::Store(argmax, d, s.argmax + v * kLanes);
  hn::Store(distance, d, s.distance + v * kLanes);
}

void whole_rows_stats(const AttentionInputs<float>& in, const AttentionStats<float>& stats) {
  run_row_tiles(in, [&](WholeRowsWorker& w, Scratch&) HWY_ATTR {
    const QueryTile& q = *w.q;
    RowStats s;
    alignas(64) float lse[kTileQ];
    w.normalise(lse);
    for (int v = 0; v < w.scorer.lanes.vectors; ++v) column_stats(w, v, s);
    for (int r = 0; r < q.rows; ++r) {
      const bool empty = q.empty(r) || lse[r] == kNegInf;
      const auto put = [&](const Strided<float>& to, float value) {
        if (to.data) *to.row(q.seq.b, q.head[r], q.seq.q_begin + q.query[r]) = value;
      };
      put(stats.entropy, empty ? 0.0f : s.entropy[r]);
      put(stats.max_weight, empty ? 0.0f : s.max_weight[r]);
      put(stats.argmax, empty ? -1.0f : s.argmax[r]);
      put(stats.mean_distance, empty ? 0.0f : s.distance[r]);
      put(stats.lse, empty ? kNegInf : lse[r]);
    }
  });
}

// The rule up to a stage: plain scores know no masks.
ScoreArgs<float> rule_until(const ScoreArgs<float>& rule, ScoreStage stage) {
  if (stage == ScoreStage::weights) return rule;
  ScoreArgs<float> part = rule;
  part.normaliser = Normaliser::hard;  // scores in natural units
  if (stage == ScoreStage::biased) return part;
  part.causal = false;
  part.window_left = part.window_right = -1;
  part.key_lens = nullptr;
  part.mask = {};
  part.bias = {};
  if (stage == ScoreStage::raw) part.softcap = 0;
  return part;
}

void whole_rows_scores(const AttentionInputs<float>& in, const ScoreWindow& window, float* scores) {
  AttentionInputs<float> part = in;
  part.rule = rule_until(in.rule, window.stage);
  const Sequence seq = sequence_of(in, window.b);
  const int64_t tiles = (window.row_end - window.row_begin + kTileQ - 1) / kTileQ;
  parallel_for(tiles, [&](int64_t t) HWY_ATTR {
    Scratch scratch;
    WholeRowsWorker w(part, seq.Lk, scratch);
    QueryTile tile;
    const int64_t first = window.row_begin + t * kTileQ;
    make_head_tile(part, seq, window.h, first, tile);
    w.score(tile);
    alignas(64) float lse[kTileQ];
    if (window.stage == ScoreStage::weights) w.normalise(lse);
    const float none = window.stage == ScoreStage::biased ? kNegInf : 0.0f;
    for (int64_t i = first; i < std::min(first + tile.rows, window.row_end); ++i) {
      float* to = scores + (i - window.row_begin) * in.dims.Lk;
      const auto r = static_cast<int>(i - first);
      std::fill(to, to + in.dims.Lk, none);
      if (tile.empty(r)) continue;
      for (int64_t j = tile.begin; j < tile.end; ++j) to[j] = w.z[(j - tile.begin) * kTileQ + r];
    }
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {
HWY_EXPORT(whole_rows_stats);
HWY_EXPORT(whole_rows_scores);
void attention_stats(const AttentionInputs<float>& in, const AttentionStats<float>& stats) {
  HWY_DYNAMIC_DISPATCH(whole_rows_stats)(in, stats);
}
void attention_scores(const AttentionInputs<float>& in, const ScoreWindow& window, float* scores) {
  HWY_DYNAMIC_DISPATCH(whole_rows_scores)(in, window, scores);
}
}  // namespace qkv::kernels
#endif
