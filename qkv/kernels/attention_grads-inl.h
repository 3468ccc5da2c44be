// What every attention backward shares, per SIMD target: packing, dV / dK / dQ / d_bias of a tile, and the tasks.
#if defined(QKV_KERNELS_ATTENTION_GRADS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_ATTENTION_GRADS_INL_H_
#undef QKV_KERNELS_ATTENTION_GRADS_INL_H_
#else
#define QKV_KERNELS_ATTENTION_GRADS_INL_H_
#endif

#include "qkv/base/parallel.h"
#include "qkv/kernels/attention_grad_plan.h"
#include "qkv/kernels/attention_values-inl.h"
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
    q_rows = scratch.floats(kTileQ * padded(dims.D));
    d_out_rows = scratch.floats(kTileQ * padded(dims.Dv));
    d_q = scratch.floats(kTileQ * padded(dims.D));
    z = scratch.floats(tile);
    dp = scratch.floats(tile);
    if (in.rule.softcap > 0) slope = scratch.floats(tile);
    if (in.rule.mask.data || in.rule.bias.data) {
      scorer.extra = scratch.floats(tile);
      scorer.rows = scratch.floats(tile);
    }
    zeros = scratch.floats(widest);
    std::fill(zeros, zeros + widest, 0.0f);
    if (in.rule.additive) {
      additive = scratch.floats(padded(dims.D));
      pack_rows(&in.rule.additive, 1, dims.D, 1.0f, additive);
    }
    if (dims.D % kLanes != 0) keys = scratch.floats(kTileK * padded(dims.D));
    lse = scratch.floats(kTileQ);
    delta = scratch.floats(kTileQ);
    dropout_keys = reinterpret_cast<uint32_t*>(scratch.floats(kTileQ));
  }

  // Sums of d_k and d_v over the chunk's keys, zeroed: in place when the width is whole vectors.
  void open(const GradChunk& chunk) {
    open_one(chunk, grads.d_k, in.dims.D, chunk.d_k, d_k_rows);
    open_one(chunk, grads.d_v, in.dims.Dv, chunk.d_v, d_v_rows);
    chunk_begin = chunk.begin;
  }
  void close(const GradChunk& chunk) const {
    close_one(chunk, grads.d_k, in.dims.D, d_k_rows);
    close_one(chunk, grads.d_v, in.dims.Dv, d_v_rows);
  }

  // Packs a tile's queries and incoming gradients. A row with lse = -inf saw no key: it becomes an empty row,
  // and like the lanes past the last row it is packed as zeros with lse = +inf, so that its weights are zero.
  void start(QueryTile& tile) {
    q = &tile;
    scorer.q = q;
    for (int r = 0; r < kTileQ; ++r) {
      const bool real = r < tile.rows && !tile.empty(r);
      const float own = real ? *grads.lse.row(tile.seq.b, tile.head[r], tile.seq.q_begin + tile.query[r]) : kNegInf;
      if (own == kNegInf && real) {
        tile.lo[r] = tile.hi[r] = 0;
        tile.by_position = false;  // no longer
      }
      lse[r] = own == kNegInf ? -kNegInf : own * scorer.unit;
    }
    set_lane_ranges(tile, scorer.lanes);
    const RowPointers queries = row_pointers(tile, in.q, zeros), d_outs = row_pointers(tile, grads.d_out, zeros);
    const RowPointers outs = row_pointers(tile, grads.out, zeros);
    const int vectors = scorer.lanes.vectors;
    pack_transposed(queries, vectors, in.dims.D, scorer.q_scale(), packed_q);
    pack_transposed(d_outs, vectors, in.dims.Dv, 1.0f, packed_d_out);
    pack_rows(queries.row, tile.rows, in.dims.D, additive ? 1.0f : in.rule.scale, q_rows);
    pack_rows(d_outs.row, tile.rows, in.dims.Dv, 1.0f, d_out_rows);
    dot_rows(d_outs, outs, vectors * kLanes);
    if (in.rule.dropout_threshold) {
      for (int r = 0; r < tile.rows; ++r) {
        const auto plane = static_cast<uint64_t>(tile.seq.b * in.dims.H + tile.head[r]);
        dropout_keys[r] = dropout_row_key(in.rule.dropout_seed, plane, static_cast<uint64_t>(tile.query[r]));
      }
    }
    finite_known = false;
  }

  // The three sums of a finished tile: z holds P, dp holds dZ.
  void add_grads(const KeyTile& k, bool first) {
    if (k.ragged) {
      fill_unseen(scorer.lanes, k, 0.0f, z);
      fill_unseen(scorer.lanes, k, 0.0f, dp);
      note_finite();
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
      row_sum({z, d_out_rows, d_out_finite, in.dims.Dv, d_v_rows.data + at * d_v_rows.stride, d_v_rows.stride}, *q,
              scorer.lanes, k);
    }
    if (grads.d_k.data && !additive) {  // dK += dZᵀ Q · scale
      row_sum({dp, q_rows, q_finite, in.dims.D, d_k_rows.data + at * d_k_rows.stride, d_k_rows.stride}, *q,
              scorer.lanes, k);
    }
    if (grads.d_q.data && !additive) {  // dQ += dZ K
      ColumnSum sum;
      sum.w = dp;
      sum.b = vector_rows(in.k, *q, k.jb, k.je, in.dims.D, keys);
      sum.cols = in.dims.D;
      sum.c = d_q;
      sum.c_stride = padded(in.dims.D);
      sum.first = first;
      column_sum(sum, *q, k);
    }
  }

  // Writes the tile's d_q of this chunk; `untouched` when no key of the chunk was seen.
  void finish_queries(const GradChunk& chunk, bool untouched) const {
    if (!chunk.d_q.data) return;
    const int64_t D = in.dims.D;
    const float scale = additive ? 1.0f : in.rule.scale;  // additive scores have it in dZ
    for (int r = 0; r < q->rows; ++r) {
      float* to = chunk.d_q.row(q->seq.b, q->head[r], q->seq.q_begin + q->query[r]);
      const float* from = d_q + r * padded(D);
      const bool zero = untouched || q->empty(r);
      if (zero) {
        std::fill(to, to + D, 0.0f);
      } else {
        scale_row(from, D, scale, to);
      }
    }
  }

  QueryTile tile;  // the one at work; the next may keep its ranges

  float* d_k_row(int64_t j) const { return d_k_rows.data + (j - chunk_begin) * d_k_rows.stride; }

  const AttentionInputs<float>& in;
  const AttentionGrads<float>& grads;
  const QueryTile* q = nullptr;
  Scorer scorer;
  float *packed_q = nullptr, *packed_d_out = nullptr, *q_rows = nullptr, *d_out_rows = nullptr, *d_q = nullptr;
  float *z = nullptr, *dp = nullptr, *slope = nullptr, *zeros = nullptr, *keys = nullptr;
  float *lse = nullptr, *delta = nullptr;  // [kTileQ]
  float* additive = nullptr;               // [padded(D)] the additive score's weights
  uint32_t* dropout_keys = nullptr;
  bool finite_known = false, q_finite = true, d_out_finite = true;

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
    for (int64_t j = 0; j < chunk.end - chunk.begin; ++j) {
      std::fill(rows.data + j * rows.stride, rows.data + j * rows.stride + padded(cols), 0.0f);
    }
  }
  static void close_one(const GradChunk& chunk, const Strided<float>& to, int64_t cols, const Sums& rows) {
    if (!to.data || cols % kLanes == 0) return;
    for (int64_t j = chunk.begin; j < chunk.end; ++j) {
      const float* from = rows.data + (j - chunk.begin) * rows.stride;
      std::copy(from, from + cols, to.row(chunk.seq.b, chunk.kv, chunk.seq.k_begin + j));
    }
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
      delta[r] = total;
    }
  }

  void note_finite() {
    if (finite_known) return;
    q_finite = all_finite(q_rows, padded(in.dims.D), q->rows, in.dims.D);
    d_out_finite = all_finite(d_out_rows, padded(in.dims.Dv), q->rows, in.dims.Dv);
    finite_known = true;
  }

  Sums d_k_rows, d_v_rows;
  int64_t chunk_begin = 0;
};

// Runs fn(worker, chunk) for every chunk of every (sequence, key/value head), then adds up the partial d_q.
template <class Fn>
void run_grad_chunks(const AttentionInputs<float>& in, const AttentionGrads<float>& grads, float unit, bool whole_rows,
                     Fn&& fn) {
  Scratch shared;
  const GradPlan plan(in, grads, whole_rows, shared);
  const int64_t together = std::clamp<int64_t>(plan.tasks() / (8 * num_threads()), 1, 16);
  parallel_blocks(plan.tasks(), together, [&](int64_t first, int64_t last) HWY_ATTR {
    Scratch scratch;
    GradWorker worker(in, grads, unit, scratch);
    for (int64_t n = first * plan.steps(); n < last * plan.steps(); ++n) {
      GradChunk chunk;
      if (!plan.get(n / plan.steps(), n % plan.steps(), chunk)) continue;
      Scratch room;
      const int64_t keys = chunk.end - chunk.begin;
      if (in.dims.D % kLanes != 0) chunk.d_k = room.floats(keys * padded(in.dims.D));
      if (in.dims.Dv % kLanes != 0) chunk.d_v = room.floats(keys * padded(in.dims.Dv));
      fn(worker, chunk);
    }
  });
  plan.add_partial_d_q();
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
