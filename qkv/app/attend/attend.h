// What the attend command computes, without files and options: one request in, every array it may save out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "qkv/ops/attention.h"

namespace qkv::app {

/// Valid lengths as they were saved: [B], or [B,Lq] where a row may have its own.
struct Lengths {
  Shape shape;
  std::vector<int64_t> values;
  bool given() const { return !values.empty(); }
};

/// Arrays in the layout of their files, f32. The meaning of every field is that of ONNX Attention, opsets 23 to 25.
struct AttendRequest {
  Tensor q, k, v;                   // [B,H,L,D] each, or [B,L,H·D] each
  int64_t heads = 0, kv_heads = 0;  // of [B,L,H·D] arrays; 0: not given (one head; as many as heads)
  std::optional<double> scale;      // β; not given: the score's
  Score score = Score::scaled_dot;
  Normaliser normaliser = Normaliser::softmax;
  bool causal = false;
  int64_t window_left = -1, window_right = -1;
  double softcap = 0;
  BoolMask mask;          // true = takes part
  Tensor bias;            // a float mask, contiguous: added to the scores, -inf hides
  Lengths valid_lens;     // keys at and past the length are hidden
  Lengths kv_lens;        // [B]: as valid_lens, and query Lq-1 is at the last valid key (external cache)
  Tensor past_k, past_v;  // [B,Hkv,P,D], [B,Hkv,P,Dv]: come before k and v; query 0 is at key P
  Tensor d_out;           // gradient of the output; undefined: no backward
};

struct AttendResult {
  Tensor q, k, v;        // [B,H,Lq,D], [B,Hkv,P+Lk,D], [B,Hkv,P+Lk,Dv]; k and v are the present cache
  ScoreRule rule;        // what scores, statistics and maps of q and k are computed with
  double scale = 1;      // the one in effect
  Tensor out;            // [B,H,Lq,Dv], or [B,Lq,H·Dv] when the inputs are [B,L,H·D]
  Tensor d_q, d_k, d_v;  // in the layout of the inputs, k and v without the past; undefined without d_out
};

/// Throws ShapeError naming the arrays that do not fit, ConfigError for impossible options.
AttendResult compute_attend(const AttendRequest& request);

}  // namespace qkv::app
