// Cuts the backward pass into tasks and adds up the shares of d_q.
#include "qkv/kernels/attention/grad_chunks.h"

#include <algorithm>

#include "qkv/base/parallel.h"

namespace qkv::kernels {
namespace {

constexpr int64_t kChunks = 16;      // per sequence, over all its heads
constexpr int64_t kLeastKeys = 512;  // of a chunk: below that, packing the queries again costs too much

// The sequence's own length: padding keys do not count.
int64_t own_keys(const AttentionInputs<float>& in, const Sequence& s) {
  if (!in.rule.key_lens || in.rule.lens_q_stride != 0) return s.Lk;
  return std::clamp<int64_t>(in.rule.key_lens[s.b * in.rule.lens_b_stride], 0, s.Lk);
}

}  // namespace

int64_t GradChunks::chunk_count(int64_t keys) const {
  const int64_t Hkv = in_.dims.Hkv;
  return whole_rows_ ? 1 : std::clamp<int64_t>(std::min((kChunks + Hkv - 1) / Hkv, keys / kLeastKeys), 1, kChunks);
}

GradChunks::GradChunks(const AttentionInputs<float>& in, const AttentionGrads<float>& grads, bool whole_rows,
                       Scratch& scratch)
    : in_(in), grads_(grads) {
  const AttentionDims& dims = in.dims;
  whole_rows_ = whole_rows;
  most_chunks_ = chunk_count(dims.Lk);
  const ScoreArray<float>& bias = in.rule.bias;
  const bool batch_shared = grads.d_bias && bias.b_stride == 0;
  const bool heads_shared = grads.d_bias && bias.h_stride == 0;
  // Sequences of different lengths are cut at different keys.
  const bool keys_shared = grads.d_bias && (bias.k_stride == 0 || (batch_shared && (in.rule.key_lens || in.k_offsets)));
  const int64_t sizes[3] = {dims.B, dims.Hkv, most_chunks_};
  const bool shared[3] = {batch_shared, heads_shared, keys_shared};
  for (int axis = 0; axis < 3; ++axis) {
    outer_[axis] = shared[axis] ? 1 : sizes[axis];
    inner_[axis] = shared[axis] ? sizes[axis] : 1;
  }
  rows_ = in.q_offsets ? in.q_offsets[dims.B] : dims.B * dims.Lq;
  share_ = rows_ * dims.H * dims.D;
  if (most_chunks_ > 1 && grads.d_q.data) shares_ = scratch.floats((most_chunks_ - 1) * share_);
}

bool GradChunks::get(int64_t task, int64_t step, GradChunk& chunk) const {
  const int64_t t[3] = {task / (outer_[1] * outer_[2]), task / outer_[2] % outer_[1], task % outer_[2]};
  const int64_t s[3] = {step / (inner_[1] * inner_[2]), step / inner_[2] % inner_[1], step % inner_[2]};
  const int64_t b = t[0] + s[0], c = t[2] + s[2];
  chunk.seq = sequence_of(in_, b);
  chunk.kv = t[1] + s[1];
  const int64_t keys = own_keys(in_, chunk.seq), count = chunk_count(keys);
  if (c >= count) return false;
  const int64_t size = ((keys + count - 1) / count + kTileK - 1) / kTileK * kTileK;
  chunk.begin = std::min(c * size, chunk.seq.Lk);
  chunk.end = c + 1 == count ? chunk.seq.Lk : std::min((c + 1) * size, chunk.seq.Lk);
  chunk.d_q = grads_.d_q;
  if (c > 0 && shares_) {
    const AttentionDims& dims = in_.dims;
    const int64_t length = in_.q_offsets ? rows_ : dims.Lq;
    chunk.d_q = {shares_ + (c - 1) * share_, in_.q_offsets ? 0 : dims.H * length * dims.D, length * dims.D, dims.D};
  }
  return true;
}

void GradChunks::add_partial_d_q() const {
  if (!shares_) return;
  const AttentionDims& dims = in_.dims;
  parallel_for(dims.B * dims.H, [&](int64_t plane) {
    const int64_t b = plane / dims.H, h = plane % dims.H;
    const Sequence seq = sequence_of(in_, b);
    const int64_t count = chunk_count(own_keys(in_, seq));
    const int64_t length = in_.q_offsets ? rows_ : dims.Lq;
    const int64_t start = in_.q_offsets ? h * length + seq.q_begin : (b * dims.H + h) * length;
    for (int64_t i = 0; i < seq.Lq; ++i) {
      float* to = grads_.d_q.row(b, h, seq.q_begin + i);
      for (int64_t c = 1; c < count; ++c) {
        const float* share = shares_ + (c - 1) * share_ + (start + i) * dims.D;
        for (int64_t x = 0; x < dims.D; ++x) to[x] += share[x];
      }
    }
  });
}

}  // namespace qkv::kernels
