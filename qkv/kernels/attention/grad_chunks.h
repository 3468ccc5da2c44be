// How the backward pass is cut into tasks that no two threads share a sum in.
#pragma once

#include <cstdint>

#include "qkv/kernels/attention/query_tiles.h"
#include "qkv/kernels/scratch.h"

namespace qkv::kernels {

/// Keys [begin, end) of one (sequence, key/value head): one thread sums all their gradients.
struct GradChunk {
  Sequence seq;
  int64_t kv = 0, begin = 0, end = 0;
  Strided<float> d_q;                    // where this chunk's share of d_q goes
  float *d_k = nullptr, *d_v = nullptr;  // room for sums of padded width, when they cannot be made in place
};

/// The tasks of one backward call. The number of key chunks depends on the heads and on the sequence's own length
/// only, so neither the batch nor the threads change a bit; every chunk but the first writes its share of d_q to
/// its own array, and the shares are added in order. Axes along which d_bias repeats stay inside one task.
/// With whole_rows there is one chunk.
class GradChunks {
 public:
  GradChunks(const AttentionInputs<float>& in, const AttentionGrads<float>& grads, bool whole_rows, Scratch& scratch);
  int64_t tasks() const { return outer_[0] * outer_[1] * outer_[2]; }
  /// Steps of each task, to be run in order.
  int64_t steps() const { return inner_[0] * inner_[1] * inner_[2]; }
  /// The chunk of a step; false when the sequence has fewer chunks.
  bool get(int64_t task, int64_t step, GradChunk& chunk) const;
  void add_partial_d_q() const;

 private:
  int64_t chunk_count(int64_t keys) const;

  const AttentionInputs<float>& in_;
  const AttentionGrads<float>& grads_;
  bool whole_rows_ = false;
  int64_t outer_[3], inner_[3];  // batch, key/value heads, chunks: one of the two is the size, the other 1
  int64_t most_chunks_ = 1, share_ = 0, rows_ = 0;
  float* shares_ = nullptr;  // [most_chunks - 1][share]
};

}  // namespace qkv::kernels
