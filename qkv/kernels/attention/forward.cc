// Softmax attention forward: query tiles against key tiles with a running maximum, never storing [Lq, Lk].
#include <cmath>

#include "qkv/base/parallel.h"
#include "qkv/kernels/attention/query_tiles.h"
#include "qkv/kernels/attention/variants.h"
#include "qkv/kernels/dropout.h"
#include "qkv/kernels/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/attention/forward.cc"
#include "hwy/foreach_target.h"
#include "qkv/kernels/attention/values-inl.h"
#include "qkv/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {
namespace {

// A softmax over some of the keys: p = 2^(z - max), out = Σ p v, sum = Σ p.
struct Partial {
  float *max = nullptr, *sum = nullptr;  // [kTileQ]
  float* out = nullptr;                  // [kTileQ, padded(Dv)]
};
int64_t partial_size(int64_t Dv) { return kTileQ * (padded(Dv) + 2); }
Partial partial_at(float* memory) { return {memory, memory + kTileQ, memory + 2 * kTileQ}; }

// One query tile at work: its scores, scratch, and where dropout is.
struct Worker {
  Worker(const AttentionInputs<float>& inputs, Scratch& scratch) : in(inputs) {
    const AttentionDims& dims = in.dims;
    scorer.in = &in;
    scorer.unit = kLog2e;
    packed_q = scratch.floats(dims.D * kTileQ);
    scorer.packed_q = packed_q;
    if (in.rule.mask.data || in.rule.bias.data) {
      scorer.extra = scratch.floats(kTileK * kTileQ);
      scorer.extra_rows = scratch.floats(kTileK * kTileQ);
    }
    scorer.few = dims.D % kLanes == 0 && kLanes > 1 && dims.H / dims.Hkv * dims.Lq <= 4;
    z = scratch.floats(kTileK * kTileQ);
    rescale = scratch.floats(kTileQ);
    factor = scratch.floats(kTileQ);
    zeros = scratch.floats(dims.D);
    std::fill(zeros, zeros + dims.D, 0.0f);
    if (dims.Dv % kLanes != 0) values = scratch.floats(kTileK * padded(dims.Dv));
    dropout_keys = reinterpret_cast<uint32_t*>(scratch.floats(kTileQ));
  }

  void start(const QueryTile& tile) {
    q = &tile;
    scorer.q = q;
    if (!tile.same_ranges) set_lane_ranges(tile, scorer.lanes);
    pack_transposed(row_pointers(tile, in.q, zeros), scorer.lanes.vectors, in.dims.D, scorer.q_scale(), packed_q);
    const ScoreArgs<float>& rule = in.rule;
    one_query = scorer.few && tile.rows == 1 && !scorer.extra && !(rule.softcap > 0) && !rule.dropout_threshold &&
                in.dims.Dv % kLanes == 0;
    if (rule.dropout_threshold) {
      for (int r = 0; r < tile.rows; ++r) {
        const auto plane = static_cast<uint64_t>(tile.seq.b * in.dims.H + tile.head[r]);
        dropout_keys[r] = dropout_row_key(rule.dropout_seed, plane, static_cast<uint64_t>(tile.query[r]));
      }
    }
  }

  const AttentionInputs<float>& in;
  const QueryTile* q = nullptr;
  Scorer scorer;
  float *packed_q = nullptr, *z = nullptr, *zeros = nullptr, *values = nullptr;
  float *rescale = nullptr, *factor = nullptr;  // [kTileQ] of the sums so far, and of the result
  uint32_t* dropout_keys = nullptr;
  bool one_query = false;  // of plain scores: one_query_tile
};

HWY_INLINE Vec column_max(const float* z, int64_t count, Vec max) {
  const F32 d;
  Vec other = max;  // two chains: one maximum has to wait for the last
  int64_t y = 0;
  for (; y + 4 <= count; y += 4, z += 4 * kTileQ) {
    max = hn::Max(max, hn::Max(hn::Load(d, z), hn::Load(d, z + kTileQ)));
    other = hn::Max(other, hn::Max(hn::Load(d, z + 2 * kTileQ), hn::Load(d, z + 3 * kTileQ)));
  }
  for (; y < count; ++y, z += kTileQ) max = hn::Max(max, hn::Load(d, z));
  return hn::Max(max, other);
}

// One vector of queries: z becomes p = 2^(z - max), dropped entries 0. Returns Σ p before dropout, even and odd
// keys summed separately. With few queries, the next values are prefetched.
template <bool kDropout, bool kFew>
HWY_INLINE Vec exp_column(const Worker& w, int v, int64_t first, int64_t last, Vec max, float* z) {
  const F32 d;
  const auto keys = hn::Load(U32(), w.dropout_keys + v * kLanes);
  const float* values = w.in.v.row(w.q->seq.b, w.q->kv, w.q->seq.k_begin);
  const uint32_t threshold = w.in.rule.dropout_threshold;
  const auto step = [&](int64_t j, float* at, Vec sum, hn::Mask<F32> kept) HWY_ATTR {
    Vec p = exp2(hn::Sub(hn::Load(d, at), max));
    sum = hn::Add(sum, p);
    if constexpr (kDropout) p = hn::IfThenElseZero(kept, p);
    hn::Store(p, d, at);
    if constexpr (kFew) fetch_row(values + (j + kRowsAhead) * w.in.v.l_stride, w.in.dims.Dv);
    return sum;
  };
  const auto kept = [&](int64_t j) HWY_ATTR { return kDropout ? kept_pair(keys, j, threshold) : KeptPair(); };
  Vec even = hn::Zero(d), odd = hn::Zero(d);
  int64_t j = first;
  if (j < last && j % 2 != 0) {
    odd = step(j, z, odd, kept(j).odd);
    ++j;
    z += kTileQ;
  }
  for (; j + 2 <= last; j += 2, z += 2 * kTileQ) {
    const KeptPair pair = kept(j);
    even = step(j, z, even, pair.even);
    odd = step(j + 1, z + kTileQ, odd, pair.odd);
  }
  if (j < last) even = step(j, z, even, kept(j).even);
  return hn::Add(even, odd);
}

// One step of the running softmax: z becomes weights relative to the new maximum, and rescale what the sums so
// far must be multiplied by.
HWY_NOINLINE void softmax_step(const Worker& w, const KeyTile& k, const Partial& run, float* z, float* rescale) {
  const F32 d;
  const LaneRanges& l = w.scorer.lanes;
  for (int v = 0; v < l.vectors; ++v) {
    const int64_t first = k.first(l, v), last = k.last(l, v);
    float* column = z + (first - k.jb) * kTileQ + v * kLanes;
    const Vec old_max = hn::Load(d, run.max + v * kLanes);
    const Vec max = column_max(column, last - first, old_max);
    hn::Store(max, d, run.max + v * kLanes);
    // Lanes that have seen no key yet take 0 as their maximum: 2^(-inf - 0) = 0.
    const Vec from = hn::IfThenZeroElse(hn::Eq(max, hn::Set(d, kNegInf)), max);
    const auto exp = [&](auto few) HWY_ATTR {
      return w.in.rule.dropout_threshold ? exp_column<true, decltype(few)::value>(w, v, first, last, from, column)
                                         : exp_column<false, decltype(few)::value>(w, v, first, last, from, column);
    };
    const Vec sum = w.scorer.few ? exp(std::true_type()) : exp(std::false_type());
    const Vec factor = exp2(hn::Sub(old_max, from));
    hn::Store(factor, d, rescale + v * kLanes);
    hn::Store(hn::MulAdd(hn::Load(d, run.sum + v * kLanes), factor, sum), d, run.sum + v * kLanes);
  }
  if (k.ragged) fill_unseen(l, k, 0.0f, z);
}

// What a row's Σ p v is multiplied by at the end.
void finish_factors(const Worker& w, const Partial& run, float* factor) {
  const F32 d;
  for (int v = 0; v < w.q->rows; v += kLanes) {
    hn::Store(hn::Div(hn::Set(d, w.in.rule.keep_scale), hn::Load(d, run.sum + v)), d, factor + v);
  }
}

// acc += Σ_j weight[j] · row j, NV vectors wide, in the order of the keys; the next rows are prefetched.
template <int NV>
HWY_INLINE void add_rows(const float* weight, int64_t keys, const float* rows, int64_t stride, const ColumnSum& s,
                         float* c) {
  const F32 d;
  Vec acc[NV];
  QKV_UNROLL for (int n = 0; n < NV; ++n) {
    acc[n] = s.first ? hn::Zero(d) : hn::Mul(hn::Set(d, s.before[0]), hn::LoadU(d, c + n * kLanes));
  }
  for (int64_t j = 0; j < keys; ++j, rows += stride) {
    fetch_row(rows + (keys + kRowsAhead) * stride, NV * kLanes);
    const Vec x = hn::Set(d, weight[j]);
    QKV_UNROLL for (int n = 0; n < NV; ++n) acc[n] = hn::MulAdd(x, hn::LoadU(d, rows + n * kLanes), acc[n]);
  }
  QKV_UNROLL for (int n = 0; n < NV; ++n) {
    hn::StoreU(s.after ? hn::Mul(acc[n], hn::Set(d, s.after[0])) : acc[n], d, c + n * kLanes);
  }
}

// One query and a tile of keys that it sees whole: the sums of the general case, with nothing in between that would
// let the reading of keys and values pause.
HWY_NOINLINE void one_query_tile(const Worker& w, const KeyTile& k, const Partial& run, ColumnSum sum, bool last) {
  const F32 d;
  const int64_t keys = k.je - k.jb;
  alignas(64) float z[kTileK];
  Product p;
  p.a = w.in.k.row(w.q->seq.b, w.q->kv, w.q->seq.k_begin + k.jb);
  p.a_stride = w.in.k.l_stride;
  p.b = w.packed_q;
  p.K = w.in.dims.D;
  few_scores<1, 1>(p, keys, z);
  std::fill(z + keys, z + padded(keys), kNegInf);
  Vec top = hn::Set(d, run.max[0]);
  const Vec old_max = top;
  for (int64_t j = 0; j < keys; j += kLanes) top = hn::Max(top, hn::Load(d, z + j));
  const Vec max = hn::MaxOfLanes(d, top);
  const Vec from = hn::IfThenZeroElse(hn::Eq(max, hn::Set(d, kNegInf)), max);
  for (int64_t j = 0; j < keys; j += kLanes) hn::Store(exp2(hn::Sub(hn::Load(d, z + j), from)), d, z + j);
  float part[2] = {0, 0};  // even and odd keys separately
  const float* values = w.in.v.row(w.q->seq.b, w.q->kv, w.q->seq.k_begin + k.jb);
  for (int64_t j = 0; j < keys; ++j) {
    part[(k.jb + j) % 2] += z[j];
    fetch_row(values + (j + kRowsAhead) * w.in.v.l_stride, w.in.dims.Dv);
  }
  const Vec factor = exp2(hn::Sub(old_max, from));
  run.max[0] = hn::GetLane(max);
  run.sum[0] = hn::GetLane(hn::MulAdd(hn::Set(d, run.sum[0]), factor, hn::Set(d, part[0] + part[1])));
  w.rescale[0] = hn::GetLane(factor);
  sum.before = w.rescale;
  if (last) {
    finish_factors(w, run, w.factor);
    sum.after = w.factor;
  }
  int64_t c = 0;
  for (; c + 4 * kLanes <= sum.cols; c += 4 * kLanes) add_rows<4>(z, keys, values + c, w.in.v.l_stride, sum, sum.c + c);
  for (; c < sum.cols; c += kLanes) add_rows<1>(z, keys, values + c, w.in.v.l_stride, sum, sum.c + c);
}

// Keys [begin, end) of one chunk. With `direct`, it is the tile's only chunk, and the result is summed in place in out.
HWY_NOINLINE void run_chunk(const Worker& w, int64_t begin, int64_t end, const Partial& run,
                            const Strided<float>* direct) {
  std::fill(run.max, run.max + kTileQ, kNegInf);
  std::fill(run.sum, run.sum + kTileQ, 0.0f);
  ColumnSum sum;
  sum.cols = w.in.dims.Dv;
  sum.c = direct ? direct->row(w.q->seq.b, w.q->head[0], w.q->seq.q_begin + w.q->query[0]) : run.out;
  sum.c_stride = direct ? direct->l_stride : padded(w.in.dims.Dv);
  sum.first = true;
  const int64_t keys = tile_keys(w.in.dims);
  for (int64_t at = begin / keys * keys; at < end; at += keys) {
    KeyTile k = key_tile(w.in, w.scorer.lanes, std::max(at, begin), std::min(at + keys, end));
    const bool final = direct && at + keys >= end;
    if (w.one_query && !k.ragged) {
      one_query_tile(w, k, run, sum, final);
      sum.first = false;
      continue;
    }
    biased_scores(w.scorer, k, w.z, nullptr);
    softmax_step(w, k, run, w.z, w.rescale);
    if (final) finish_factors(w, run, w.factor);
    sum.w = w.z;
    sum.b = vector_rows(w.in.v, *w.q, k.jb, k.je, sum.cols, w.values);
    sum.before = w.rescale;
    sum.after = final ? w.factor : nullptr;
    column_sum(sum, *w.q, k);
    sum.first = false;
  }
}

// Adds a later chunk's softmax to the total.
void merge(const Partial& total, const Partial& part, int64_t width) {
  const F32 d;
  for (int v = 0; v < kMaxVectors; ++v) {
    const Vec a = hn::Load(d, total.max + v * kLanes), b = hn::Load(d, part.max + v * kLanes);
    const Vec max = hn::Max(a, b);
    const Vec from = hn::IfThenZeroElse(hn::Eq(max, hn::Set(d, kNegInf)), max);
    const Vec fa = exp2(hn::Sub(a, from)), fb = exp2(hn::Sub(b, from));
    hn::Store(max, d, total.max + v * kLanes);
    const Vec sum = hn::Mul(hn::Load(d, part.sum + v * kLanes), fb);
    hn::Store(hn::MulAdd(hn::Load(d, total.sum + v * kLanes), fa, sum), d, total.sum + v * kLanes);
    alignas(64) float factor_a[kLanes], factor_b[kLanes];
    hn::Store(fa, d, factor_a);
    hn::Store(fb, d, factor_b);
    for (int r = 0; r < kLanes; ++r) {
      float* to = total.out + (v * kLanes + r) * width;
      const float* more = part.out + (v * kLanes + r) * width;
      for (int64_t c = 0; c < width; c += kLanes) {
        const Vec scaled = hn::Mul(hn::Load(d, more + c), hn::Set(d, factor_b[r]));
        hn::Store(hn::MulAdd(hn::Load(d, to + c), hn::Set(d, factor_a[r]), scaled), d, to + c);
      }
    }
  }
}

// Writes a finished tile: out = Σ p v / Σ p (unless already there) and lse = ln2 · max + ln Σ p.
void finish(const Worker& w, const Partial& run, bool written, const AttentionOutputs<float>& to) {
  const F32 d;
  const QueryTile& q = *w.q;
  const int64_t Dv = w.in.dims.Dv, width = padded(Dv);
  if (!written) finish_factors(w, run, w.factor);
  const bool all_there = written && !q.any_empty && !w.scorer.extra;
  for (int r = 0; r < q.rows && !all_there; ++r) {
    const bool empty = q.empty(r) || run.sum[r] == 0;
    if (empty) run.sum[r] = 0;
    if (written && !empty) continue;
    float* out = to.out.row(q.seq.b, q.head[r], q.seq.q_begin + q.query[r]);
    if (empty) {
      std::fill(out, out + Dv, 0.0f);
    } else {
      scale_row(run.out + r * width, Dv, w.factor[r], out);
    }
  }
  if (!to.lse.data) return;
  for (int v = 0; v < q.rows; v += kLanes) {
    const Vec sum = hn::Load(d, run.sum + v);
    const Vec lse = hn::MulAdd(hn::Set(d, kLn2), hn::Load(d, run.max + v), log_v(d, sum));
    hn::Store(hn::IfThenElse(hn::Eq(sum, hn::Zero(d)), hn::Set(d, kNegInf), lse), d, run.max + v);
  }
  float* first = to.lse.row(q.seq.b, q.head[0], q.seq.q_begin + q.query[0]);
  if (q.one_head && to.lse.l_stride == 1) {
    std::copy(run.max, run.max + q.rows, first);
  } else {
    for (int r = 0; r < q.rows; ++r) *to.lse.row(q.seq.b, q.head[r], q.seq.q_begin + q.query[r]) = run.max[r];
  }
}

void run_tile(Worker& w, const QueryTile& tile, float* memory, const AttentionOutputs<float>& out) {
  const int64_t width = padded(w.in.dims.Dv);
  const Partial total = partial_at(memory), part = partial_at(memory + partial_size(w.in.dims.Dv));
  w.start(tile);
  const int64_t first = tile.begin / kChunkK, last = (tile.end + kChunkK - 1) / kChunkK;
  const bool direct = last - first == 1 && tile.begin < tile.end && tile.one_head && w.in.dims.Dv % kLanes == 0;
  for (int64_t c = first; c < last; ++c) {
    const Partial& run = c == first ? total : part;
    run_chunk(w, std::max(tile.begin, c * kChunkK), std::min(tile.end, (c + 1) * kChunkK), run,
              direct ? &out.out : nullptr);
    if (c > first) merge(total, part, width);
  }
  finish(w, total, direct, out);
}

// Few tiles with many keys (decoding): every chunk of keys is a task of its own, merged in order afterwards.
void run_by_chunks(const AttentionInputs<float>& in, const TileList& tiles, const AttentionOutputs<float>& out) {
  const int64_t chunks = (tiles.max_keys() + kChunkK - 1) / kChunkK, size = partial_size(in.dims.Dv);
  Scratch shared;
  float* memory = shared.floats(tiles.size() * chunks * size);
  parallel_for(tiles.size() * chunks, [&](int64_t task) HWY_ATTR {
    Scratch scratch;
    Worker w(in, scratch);
    QueryTile tile;
    tiles.get(task / chunks, tile);
    const int64_t c = task % chunks;
    const int64_t begin = std::max(tile.begin, c * kChunkK), end = std::min(tile.end, (c + 1) * kChunkK);
    if (begin >= end) return;
    w.start(tile);
    run_chunk(w, begin, end, partial_at(memory + task * size), nullptr);
  });
  for (int64_t t = 0; t < tiles.size(); ++t) {
    Scratch scratch;
    Worker w(in, scratch);
    QueryTile tile;
    tiles.get(t, tile);
    w.q = &tile;
    const int64_t first = tile.begin / kChunkK, last = (tile.end + kChunkK - 1) / kChunkK;
    const Partial total = partial_at(memory + (t * chunks + first) * size);
    for (int64_t c = first + 1; c < last; ++c) {
      merge(total, partial_at(memory + (t * chunks + c) * size), padded(in.dims.Dv));
    }
    finish(w, total, false, out);
  }
}

void flash_forward(const AttentionInputs<float>& in, const AttentionOutputs<float>& out) {
  const TileList tiles(in);
  if (tiles.size() < 4 * num_threads() && tiles.max_keys() > kChunkK && num_threads() > 1) {
    return run_by_chunks(in, tiles, out);
  }
  // Enough tiles in a task to cover the cost of handing it out.
  const int64_t work = kTileQ * tiles.max_keys() * (in.dims.D + in.dims.Dv);
  const int64_t most = std::max<int64_t>(1, tiles.size() / (4 * num_threads()));
  const int64_t block = std::min(most, 1 + (int64_t{1} << 20) / std::max<int64_t>(1, work));
  parallel_blocks(tiles.size(), block, [&](int64_t begin, int64_t end) HWY_ATTR {
    Scratch scratch;
    Worker w(in, scratch);
    float* memory = scratch.floats(2 * partial_size(in.dims.Dv));
    QueryTile tile;
    for (int64_t t = begin; t < end; ++t) {
      tiles.get(t, tile);
      run_tile(w, tile, memory, out);
    }
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {
HWY_EXPORT(flash_forward);
void flash_forward(const AttentionInputs<float>& in, const AttentionOutputs<float>& out) {
  HWY_DYNAMIC_DISPATCH(flash_forward)(in, out);
}
}  // namespace qkv::kernels
#endif
