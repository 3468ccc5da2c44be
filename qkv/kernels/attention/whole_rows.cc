// Attention with any score and normaliser: whole rows of a tile of queries at a time, O(Lk) memory.

#include "qkv/base/parallel.h"
#include "qkv/kernels/attention/query_tiles.h"
#include "qkv/kernels/attention/variants.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/attention/whole_rows.cc"
#include "hwy/foreach_target.h"
#include "qkv/kernels/attention/grads-inl.h"
#include "qkv/kernels/attention/whole_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {
namespace {

uint32_t row_key(const AttentionInputs<float>& in, const QueryTile& q, int r) {
  const auto plane = static_cast<uint64_t>(q.seq.b * in.dims.H + q.head[r]);
  return dropout_row_key(in.rule.dropout_seed, plane, static_cast<uint64_t>(q.query[r]));
}

void drop(const WholeRowsWorker& w) {
  const F32 d;
  alignas(64) uint32_t keys[kTileQ] = {};
  for (int r = 0; r < w.q->rows; ++r) keys[r] = row_key(w.in, *w.q, r);
  for (int v = 0; v < w.scorer.lanes.vectors; ++v) {
    const auto lane_keys = hn::Load(U32(), keys + v * kLanes);
    w.column(v).each([&](float* at, int64_t y) HWY_ATTR {
      hn::Store(hn::IfThenElseZero(kept_lanes(lane_keys, w.q->begin + y, w.in.rule.dropout_threshold), hn::Load(d, at)),
                d, at);
    });
  }
}

void forward_tile(WholeRowsWorker& w, Scratch& scratch, const AttentionOutputs<float>& to) {
  const int64_t Dv = w.in.dims.Dv, width = padded(Dv);
  const QueryTile& q = *w.q;
  alignas(64) float lse[kTileQ];
  float* out = scratch.floats(kTileQ * width);
  float* values = scratch.floats(kTileK * width);
  w.normalise(lse);
  if (w.in.rule.dropout_threshold) drop(w);
  bool first = true;
  each_key_tile(w.scorer, q.begin, q.end, w.z, [&](const KeyTile& k, float* weights) HWY_ATTR {
    ColumnSum sum;
    sum.w = weights;
    sum.b = vector_rows(w.in.v, q, k.jb, k.je, Dv, values);
    sum.cols = Dv;
    sum.c = out;
    sum.c_stride = width;
    sum.first = first;
    column_sum(sum, q, k);
    first = false;
  });
  for (int r = 0; r < q.rows; ++r) {
    const bool empty = first || q.empty(r) || lse[r] == kNegInf;
    float* row = to.out.row(q.seq.b, q.head[r], q.seq.q_begin + q.query[r]);
    for (int64_t c = 0; c < Dv; ++c) row[c] = empty ? 0.0f : out[r * width + c] * w.in.rule.keep_scale;
    if (to.lse.data) *to.lse.row(q.seq.b, q.head[r], q.seq.q_begin + q.query[r]) = empty ? kNegInf : lse[r];
  }
}

void whole_rows_forward(const AttentionInputs<float>& in, const AttentionOutputs<float>& out) {
  run_row_tiles(in, [&](WholeRowsWorker& w, Scratch& scratch) HWY_ATTR { forward_tile(w, scratch, out); });
}

// One vector of queries: z becomes the weights after dropout, dp becomes dz.
template <Normaliser kN>
HWY_INLINE void column_backward(const GradWorker& w, int64_t begin, int v, const Column& z, const Column& dp) {
  const F32 d;
  const Level level = level_of(kN, z);
  const Vec keep_scale = hn::Set(d, w.in.rule.keep_scale);
  const uint32_t threshold = w.in.rule.dropout_threshold;
  const auto keys = hn::Load(U32(), w.dropout_keys + v * kLanes);
  const auto keep = [&](Vec x, int64_t y) HWY_ATTR {
    if (threshold == 0) return x;
    return hn::IfThenElseZero(kept_lanes(keys, begin + y, threshold), hn::Mul(x, keep_scale));
  };
  Vec sum = hn::Zero(d), total = hn::Zero(d);
  z.each([&](const float* at, int64_t y) HWY_ATTR {
    const Vec score = hn::Load(d, at);
    Vec g;
    weight<kN>(level, score, &g);
    g = hn::IfThenZeroElse(hn::Eq(score, hn::Set(d, kNegInf)), g);
    const Vec grad = keep(hn::Load(d, dp.z + y * kTileQ), y);
    sum = hn::Add(sum, hn::IfThenZeroElse(hn::Eq(g, hn::Zero(d)), hn::Mul(g, grad)));
    total = hn::Add(total, g);
  });
  const Vec common = common_gradient<kN>(sum, total);
  z.each([&](float* at, int64_t y) HWY_ATTR {
    const Vec score = hn::Load(d, at);
    Vec g;
    const Vec p = weight<kN>(level, score, &g);
    g = hn::IfThenZeroElse(hn::Eq(score, hn::Set(d, kNegInf)), g);
    float* to = dp.z + y * kTileQ;
    const Vec dz = hn::Mul(g, hn::Sub(keep(hn::Load(d, to), y), common));
    hn::Store(hn::IfThenZeroElse(hn::Eq(g, hn::Zero(d)), dz), d, to);
    hn::Store(keep(p, y), d, at);
  });
}

// Additive scores of one query row: with u = dz · scale · w ∘ (1 - t²), t = tanh(q + k_j):
// dq += u, dk_j += u, dw += dz · scale · t.
HWY_INLINE void additive_row(const GradWorker& w, const KeyTile& k, const PaddedRows& keys, int r, float* d_w) {
  const F32 d;
  const int64_t width = padded(w.in.dims.D);
  for (int64_t c = 0; c < width; c += kLanes) {
    const Vec q = hn::LoadU(d, w.q_rows.data + r * width + c), weights = hn::Load(d, w.additive + c);
    Vec d_q = hn::Load(d, w.d_q + r * width + c), d_weights = hn::Load(d, d_w + c);
    for (int64_t y = 0; y < k.je - k.jb; ++y) {
      const float dz = w.dp[y * kTileQ + r];
      if (dz == 0) continue;
      const Vec g = hn::Set(d, dz * w.in.rule.scale);
      const Vec t = tanh(hn::Add(q, hn::LoadU(d, keys.data + y * keys.stride + c)));
      const Vec slope = hn::Mul(g, weights);
      const Vec u = hn::NegMulAdd(hn::Mul(t, t), slope, slope);
      d_q = hn::Add(d_q, u);
      d_weights = hn::MulAdd(g, t, d_weights);
      if (!w.grads.d_k.data) continue;
      float* d_k = w.d_k_row(k.jb + y) + c;
      hn::StoreU(hn::Add(hn::LoadU(d, d_k), u), d, d_k);
    }
    hn::Store(d_q, d, w.d_q + r * width + c);
    hn::Store(d_weights, d, d_w + c);
  }
}

struct WholeRows {
  float *z, *dp, *slope;  // [Lk][kTileQ]
  float* d_additive;      // [padded(D)] of this task
};

void backward_tile(GradWorker& w, const WholeRows& rows) {
  const QueryTile& q = *w.q;
  const AttentionDims& dims = w.in.dims;
  row_scores(w.scorer, rows.z, rows.slope);
  each_key_tile(w.scorer, q.begin, q.end, rows.dp, [&](const KeyTile& k, float* at) HWY_ATTR {
    dot_scores(w.scorer, k, w.in.v, dims.Dv, w.packed_d_out, at);  // dPᵀ = V dOᵀ
    fill_unseen(w.scorer.lanes, k, 0.0f, at);
  });
  for (int v = 0; v < w.scorer.lanes.vectors; ++v) {
    const Column z{rows.z + v * kLanes, q.end - q.begin}, dp{rows.dp + v * kLanes, q.end - q.begin};
    with_normaliser(w.in.rule.normaliser,
                    [&](auto n) HWY_ATTR { column_backward<decltype(n)::value>(w, q.begin, v, z, dp); });
  }
  bool first = true;
  each_key_tile(w.scorer, q.begin, q.end, rows.z, [&](const KeyTile& k, float* at) HWY_ATTR {
    w.z = at;
    w.dp = rows.dp + (at - rows.z);
    w.slope = rows.slope ? rows.slope + (at - rows.z) : nullptr;
    w.add_grads(k, first);
    if (w.in.rule.additive) {
      if (first) std::fill(w.d_q, w.d_q + kTileQ * padded(dims.D), 0.0f);
      const PaddedRows keys = vector_rows(w.in.k, q, k.jb, k.je, dims.D, w.keys);
      for (int r = 0; r < q.rows; ++r) additive_row(w, k, keys, r, rows.d_additive);
    }
    first = false;
  });
}

void whole_rows_backward(const AttentionInputs<float>& in, const AttentionGrads<float>& grads) {
  Scratch shared;
  const int64_t width = padded(in.dims.D), tasks = in.dims.B * in.dims.Hkv;
  float* d_additive = shared.floats(tasks * width);
  std::fill(d_additive, d_additive + tasks * width, 0.0f);
  run_grad_chunks(in, grads, unit_of(in.rule), true, [&](GradWorker& w, const GradChunk& chunk) HWY_ATTR {
    Scratch scratch;
    const int64_t size = std::max<int64_t>(chunk.seq.Lk, 1) * kTileQ;
    WholeRows rows{scratch.floats(size), scratch.floats(size), nullptr, nullptr};
    if (in.rule.softcap > 0) rows.slope = scratch.floats(size);
    rows.d_additive = d_additive + (chunk.seq.b * in.dims.Hkv + chunk.kv) * width;
    QueryTile tile;
    w.open(chunk);
    w.zero_until(chunk.end);
    const int64_t tiles = tile_count(in.dims, chunk.seq);
    for (int64_t t = 0; t < tiles; ++t) {
      make_tile(in, chunk.seq, chunk.kv, t, tile);
      w.start(tile, chunk);
      backward_tile(w, rows);
      w.finish_queries(chunk, tile.begin == tile.end);
    }
    w.close(chunk);
  });
  for (int64_t t = 0; grads.d_additive && t < tasks; ++t) {
    for (int64_t c = 0; c < in.dims.D; ++c) grads.d_additive[c] += d_additive[t * width + c];
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {
HWY_EXPORT(whole_rows_forward);
HWY_EXPORT(whole_rows_backward);
void whole_rows_forward(const AttentionInputs<float>& in, const AttentionOutputs<float>& out) {
  HWY_DYNAMIC_DISPATCH(whole_rows_forward)(in, out);
}
void whole_rows_backward(const AttentionInputs<float>& in, const AttentionGrads<float>& grads) {
  HWY_DYNAMIC_DISPATCH(whole_rows_backward)(in, grads);
}
}  // namespace qkv::kernels
#endif
