// What every attention backward shares, per SIMD target: packing, dV / dK / dQ / d_bias of a tile, and the tasks.
#if defined(QKV_KERNELS_ATTENTION_GRADS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_ATTENTION_GRADS_INL_H_
#undef QKV_KERNELS_ATTENTION_GRADS_INL_H_
#else
#define QKV_KERNELS_ATTENTION_GRADS_INL_H_
#endif

#include "qkv/base/parallel.h"
#include "qkv/kernels/attention/grad_chunks.h"
#include "qkv/kernels/attention/values-inl.h"
#include "qkv/kernels/dropout.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

// d_bias[row][j] += dZ[j][row]: transposed back, kLanes keys at a time.
inline HWY_NOINLINE void add_bias_rows(const QueryTile& q, const KeyTile& k, const ScoreArray<float>& bias,
                                       const float* dz, float* d_bias) {
  const F32 d;
  const auto row_of = [&](int r) {
    return d_bias + q.seq.b * bias.b_stride + q.head[r] * bias.h_stride + q.query[r] * bias.q_stride;
  };
  int64_t j = k.jb;
  for (; j + kLanes <= k.je && bias.k_stride == 1; j += kLanes) {
    const float* rows[kLanes];
    for (int y = 0; y < kLanes; ++y) rows[y] = dz + (j - k.jb + y) * kTileQ;
    for (int r = 0; r < q.rows; r += 4) {
      Vec t[4];
      transpose4(rows, r, t);
      for (int i = 0; i < std::min(4, q.rows - r); ++i) {
        float* to = row_of(r + i) + j;
        hn::StoreU(hn::Add(hn::LoadU(d, to), t[i]), d, to);
      }
    }
  }
  for (; j < k.je; ++j) {
    for (int r = 0; r < q.rows; ++r) row_of(r)[j * bias.k_stride] += dz[(j - k.jb) * kTileQ + r];
  }
}

// One thread's state while it works through query tiles.
struct GradWorker {
  GradWorker(const AttentionInputs<float>& inputs, const AttentionGrads<float>& outputs, float unit, Scratch& scratch)
      : in(inputs), grads(outputs) {
    const AttentionDims& dims = in.dims;
    const int64_t tile = kTileK * kTileQ, widest = std::max(padded(dims.D), padded(dims.Dv));
    scorer.in = &in;
    scorer.unit = unit;
    packed_q = scratch.floats(dims.D * kTileQ);
    scorer.packed_q = packed_q;
    packed_d_out = scratch.floats(dims.Dv * kTileQ);
    q_room = scratch.floats(kTileQ * padded(dims.D));
    d_out_room = scratch.floats(kTileQ * padded(dims.Dv));
    d_q_room = scratch.floats(kTileQ * padded(dims.D));
    z = scratch.floats(tile);
    dp = scratch.floats(tile);
    if (in.rule.softcap > 0) slope = scratch.floats(tile);
    if (in.rule.mask.data || in.rule.bias.data) {
      scorer.extra = scratch.floats(tile);
      scorer.extra_rows = scratch.floats(tile);
    }
    zeros = scratch.floats(widest);
    std::fill(zeros, zeros + widest, 0.0f);
    if (in.rule.additive) {
      additive = scratch.floats(padded(dims.D));
      pack_rows(&in.rule.additive, 1, dims.D, 1.0f, additive);
    }
    if (dims.D % kLanes != 0) keys = scratch.floats(kTileK * padded(dims.D));
    if (!additive) (grads.d_bias ? rest_scale : dz_scale) = in.rule.scale;
    lse = scratch.floats(kTileQ);
    delta = scratch.floats(kTileQ);
    dropout_keys = reinterpret_cast<uint32_t*>(scratch.floats(kTileQ));
  }

  // Sums of d_k and d_v over the chunk's keys: in place when the width is whole vectors. They are set key by key, by
  // the first tile that sees it.
  void open(const GradChunk& chunk) {
    open_one(chunk, grads.d_k, in.dims.D, chunk.d_k, d_k_rows);
    open_one(chunk, grads.d_v, in.dims.Dv, chunk.d_v, d_v_rows);
    chunk_begin = set_end = chunk.begin;
  }
  void close(const GradChunk& chunk) {
    zero_until(chunk.end);
    close_one(chunk, grads.d_k, in.dims.D, d_k_rows);
    close_one(chunk, grads.d_v, in.dims.Dv, d_v_rows);
  }
  // The keys before `end` that no tile has set become zero.
  void zero_until(int64_t end) {
    for (; set_end < end; ++set_end) {
      const int64_t at = set_end - chunk_begin;
      if (d_k_rows.data) std::fill_n(d_k_rows.data + at * d_k_rows.stride, padded(in.dims.D), 0.0f);
      if (d_v_rows.data) std::fill_n(d_v_rows.data + at * d_v_rows.stride, padded(in.dims.Dv), 0.0f);
    }
  }

  // Packs a tile's queries and incoming gradients. A row with lse = -inf saw no key: it becomes an empty row,
  // and like the lanes past the last row it is packed as zeros with lse = +inf, so that its weights are zero.
  void start(QueryTile& tile, const GradChunk& chunk) {
    q = &tile;
    scorer.q = q;
    const bool unseen = load_lse(tile);
    if (!tile.same_ranges || unseen) set_lane_ranges(tile, scorer.lanes);
    const RowPointers queries = row_pointers(tile, in.q, zeros), d_outs = row_pointers(tile, grads.d_out, zeros);
    const int vectors = scorer.lanes.vectors;
    q_finite = pack_transposed(queries, vectors, in.dims.D, scorer.q_scale(), packed_q);
    d_out_finite = pack_transposed(d_outs, vectors, in.dims.Dv, dz_scale, packed_d_out);
    q_rows = packed_rows(in.q, queries, in.dims.D, rest_scale, q_room);
    d_out_rows = packed_rows(grads.d_out, d_outs, in.dims.Dv, 1.0f, d_out_room);
    dot_rows(d_outs, row_pointers(tile, grads.out, zeros), vectors * kLanes);
    const bool in_place = tile.one_head && in.dims.D % kLanes == 0 && rest_scale == 1 && !additive && chunk.d_q.data;
    d_q = in_place ? chunk.d_q.row(tile.seq.b, tile.head[0], tile.seq.q_begin + tile.query[0]) : d_q_room;
    d_q_stride = in_place ? chunk.d_q.l_stride : padded(in.dims.D);
    if (in.rule.dropout_threshold) {
      for (int r = 0; r < tile.rows; ++r) {
        const auto plane = static_cast<uint64_t>(tile.seq.b * in.dims.H + tile.head[r]);
        dropout_keys[r] = dropout_row_key(in.rule.dropout_seed, plane, static_cast<uint64_t>(tile.query[r]));
      }
    }
  }

  // The three sums of a finished tile: z holds P, dp holds dZ · dz_scale. `first` is the first of its queries.
  void add_grads(const KeyTile& k, bool first) {
    if (k.ragged) {
      fill_unseen(scorer.lanes, k, 0.0f, z);
      fill_unseen(scorer.lanes, k, 0.0f, dp);
    }
    if (grads.d_bias) add_bias_rows(*q, k, in.rule.bias, dp, grads.d_bias);
    if (slope) {
      const F32 d;
      each_seen(scorer.lanes, k, dp, [&](float* at, int, int64_t) HWY_ATTR {
        const Vec dz = hn::Load(d, at);
        const Vec raw = hn::Mul(dz, hn::Load(d, slope + (at - dp)));
        hn::Store(hn::IfThenZeroElse(hn::Eq(dz, hn::Zero(d)), raw), d, at);
      });
    }
    const int64_t at = k.jb - chunk_begin;
    if (grads.d_v.data) {  // dV += Pᵀ dO
      float* to = d_v_rows.data + at * d_v_rows.stride;
      row_sum({z, d_out_rows, d_out_finite, in.dims.Dv, to, d_v_rows.stride, set_end}, *q, scorer.lanes, k);
    }
    if (grads.d_k.data && !additive) {  // dK += dZᵀ Q · scale
      float* to = d_k_rows.data + at * d_k_rows.stride;
      row_sum({dp, q_rows, q_finite, in.dims.D, to, d_k_rows.stride, set_end}, *q, scorer.lanes, k);
    }
    if (grads.d_q.data && !additive) {  // dQ += dZ K
      ColumnSum sum;
      sum.w = dp;
      sum.b = vector_rows(in.k, *q, k.jb, k.je, in.dims.D, keys);
      sum.cols = in.dims.D;
      sum.c = d_q;
      sum.c_stride = d_q_stride;
      sum.first = first;
      column_sum(sum, *q, k);
    }
  }

  // Writes the tile's d_q of this chunk, if it is not there already; `untouched` when no key of the chunk was seen.
  void finish_queries(const GradChunk& chunk, bool untouched) const {
    if (!chunk.d_q.data || (d_q != d_q_room && !untouched && !q->any_empty)) return;
    const int64_t D = in.dims.D;
    for (int r = 0; r < q->rows; ++r) {
      float* to = chunk.d_q.row(q->seq.b, q->head[r], q->seq.q_begin + q->query[r]);
      if (untouched || q->empty(r)) {
        std::fill(to, to + D, 0.0f);
      } else if (d_q == d_q_room) {
        scale_row(d_q + r * d_q_stride, D, rest_scale, to);
      }
    }
  }

  QueryTile tile;  // the one at work; the next may keep its ranges

  float* d_k_row(int64_t j) const { return d_k_rows.data + (j - chunk_begin) * d_k_rows.stride; }

  const AttentionInputs<float>& in;
  const AttentionGrads<float>& grads;
  const QueryTile* q = nullptr;
  Scorer scorer;
  float *packed_q = nullptr, *packed_d_out = nullptr, *q_room = nullptr, *d_out_room = nullptr, *d_q_room = nullptr;
  float* d_q = nullptr;  // where the tile's d_q is summed: in place, or in d_q_room
  int64_t d_q_stride = 0;
  PaddedRows q_rows{nullptr, 0}, d_out_rows{nullptr, 0};
  // The scale of d_k and d_q is in dZ already, unless d_bias wants dZ without. Additive scores bring their own.
  float dz_scale = 1, rest_scale = 1;
  float *z = nullptr, *dp = nullptr, *slope = nullptr, *zeros = nullptr, *keys = nullptr;
  float *lse = nullptr, *delta = nullptr;  // [kTileQ]
  float* additive = nullptr;               // [padded(D)] the additive score's weights
  uint32_t* dropout_keys = nullptr;
  bool q_finite = true, d_out_finite = true;
  int64_t set_end = 0;  // d_k and d_v of the chunk's keys before it are set

 private:
  struct Sums {
    float* data = nullptr;
    int64_t stride = 0;
  };

  static void open_one(const GradChunk& chunk, const Strided<float>& to, int64_t cols, float* room, Sums& rows) {
    if (!to.data) return;
    const bool in_place = cols % kLanes == 0;
    rows.data = in_place ? to.row(chunk.seq.b, chunk.kv, chunk.seq.k_begin + chunk.begin) : room;
    rows.stride = in_place ? to.l_stride : padded(cols);
  }
  static void close_one(const GradChunk& chunk, const Strided<float>& to, int64_t cols, const Sums& rows) {
    if (!to.data || cols % kLanes == 0) return;
    for (int64_t j = chunk.begin; j < chunk.end; ++j) {
      const float* from = rows.data + (j - chunk.begin) * rows.stride;
      std::copy(from, from + cols, to.row(chunk.seq.b, chunk.kv, chunk.seq.k_begin + j));
    }
  }

  // The tile's lse in the units of the scores. Returns whether a row that should have keys saw none.
  bool load_lse(QueryTile& tile) {
    const float* first = grads.lse.row(tile.seq.b, tile.head[0], tile.seq.q_begin + tile.query[0]);
    if (tile.one_head && grads.lse.l_stride == 1) {
      std::copy(first, first + tile.rows, lse);
    } else {
      for (int r = 0; r < tile.rows; ++r) {
        lse[r] = *grads.lse.row(tile.seq.b, tile.head[r], tile.seq.q_begin + tile.query[r]);
      }
    }
    std::fill(lse + tile.rows, lse + kTileQ, -kNegInf);
    bool unseen = false;
    for (int r = 0; r < tile.rows; ++r) unseen |= lse[r] == kNegInf;
    bool changed = false;
    for (int r = 0; (unseen || tile.any_empty) && r < tile.rows; ++r) {
      if (lse[r] == kNegInf && !tile.empty(r)) {
        tile.lo[r] = tile.hi[r] = 0;
        changed = true;
      }
      if (tile.empty(r)) lse[r] = -kNegInf;
    }
    if (changed) {
      tile.by_position = false;  // no longer
      tile.any_empty = true;
    }
    const F32 d;
    for (int r = 0; r < kTileQ; r += kLanes) {
      hn::Store(hn::Mul(hn::Load(d, lse + r), hn::Set(d, scorer.unit)), d, lse + r);
    }
    return changed;
  }

  // The tile's rows with a factor: as they lie in memory if that will do, else copied to `room`.
  PaddedRows packed_rows(const Strided<const float>& from, const RowPointers& rows, int64_t cols, float scale,
                         float* room) const {
    if (q->one_head && !q->any_empty && scale == 1 && from.l_stride == cols && cols % kLanes == 0) {
      return {rows.row[0], cols};
    }
    pack_rows(rows.row, q->rows, cols, scale, room);
    return {room, padded(cols)};
  }

  // delta_r = dO_r · out_r, which is Σ_j P dP.
  void dot_rows(const RowPointers& a, const RowPointers& b, int count) {
    const F32 d;
    const int64_t cols = in.dims.Dv;
    for (int r = 0; r < count; ++r) {
      Vec sum = hn::Zero(d);
      int64_t c = 0;
      for (; c + kLanes <= cols; c += kLanes) {
        sum = hn::MulAdd(hn::LoadU(d, a.row[r] + c), hn::LoadU(d, b.row[r] + c), sum);
      }
      float total = hn::GetLane(hn::SumOfLanes(d, sum));
      for (; c < cols; ++c) total += a.row[r][c] * b.row[r][c];
      delta[r] = total * dz_scale;
    }
  }

  Sums d_k_rows, d_v_rows;
  int64_t chunk_begin = 0;
};

// Runs fn(worker, chunk) for every chunk of every (sequence, key/value head), then adds up the partial d_q.
template <class Fn>
void run_grad_chunks(const AttentionInputs<float>& in, const AttentionGrads<float>& grads, float unit, bool whole_rows,
                     Fn&& fn) {
  Scratch shared;
  const GradChunks chunks(in, grads, whole_rows, shared);
  const int64_t together = std::clamp<int64_t>(chunks.tasks() / (8 * num_threads()), 1, 16);
  parallel_blocks(chunks.tasks(), together, [&](int64_t first, int64_t last) HWY_ATTR {
    Scratch scratch;
    GradWorker worker(in, grads, unit, scratch);
    for (int64_t n = first * chunks.steps(); n < last * chunks.steps(); ++n) {
      GradChunk chunk;
      if (!chunks.get(n / chunks.steps(), n % chunks.steps(), chunk)) continue;
      Scratch room;
      const int64_t keys = chunk.end - chunk.begin;
      if (in.dims.D % kLanes != 0) chunk.d_k = room.floats(keys * padded(in.dims.D));
      if (in.dims.Dv % kLanes != 0) chunk.d_v = room.floats(keys * padded(in.dims.Dv));
      fn(worker, chunk);
    }
  });
  chunks.add_partial_d_q();
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
