// Attention kernels: softmax(q·kᵀ) v and its relatives, forward and backward, never storing [Lq, Lk].
#pragma once

#include <cstdint>

#include "qkv/base/score.h"

namespace qkv::kernels {

/// Sizes, by the alphabet used everywhere: B batch, H query heads, Hkv key/value heads (H % Hkv == 0),
/// Lq queries, Lk keys, D width of q and k, Dv width of v.
struct AttentionDims {
  int64_t B = 0, H = 0, Hkv = 0, Lq = 0, Lk = 0, D = 0, Dv = 0;
};

/// Element (b, h, l, d) is data[b*b_stride + h*h_stride + l*l_stride + d]: the last axis is contiguous.
template <class T>
struct Strided {
  T* data = nullptr;
  int64_t b_stride = 0, h_stride = 0, l_stride = 0;
  T* row(int64_t b, int64_t h, int64_t l) const { return data + b * b_stride + h * h_stride + l * l_stride; }
};

/// A [B,H,Lq,Lk]-broadcast array; a stride of 0 repeats. Keys at or past `cols` are masked (see ScoreArgs).
template <class T>
struct ScoreArray {
  const T* data = nullptr;
  int64_t b_stride = 0, h_stride = 0, q_stride = 0, k_stride = 0;
  int64_t cols = 0;
  const T* row(int64_t b, int64_t h, int64_t i) const { return data + b * b_stride + h * h_stride + i * q_stride; }
};

/// How a score becomes a weight. For query i and key j of batch b, with position p = i + offset(b):
///   z = scale · q·k            (stage raw; additive scores: wᵀ tanh(q + k), scale applies too)
///   z = softcap · tanh(z / softcap)                                   if softcap > 0   (capped)
///   z = z + bias[b,h,i,j], or -inf where key j is hidden                              (biased)
///   weight = normaliser(z) over j, then dropout                                        (weights)
/// Key j is visible iff  j < Lk(b)  and  j < key_lens(b,i)  and  (not causal or j ≤ p)
///   and (window_left < 0 or j ≥ p - window_left) and (window_right < 0 or j ≤ p + window_right)
///   and mask[b,h,i,j] != 0 and j < mask.cols and j < bias.cols and bias[b,h,i,j] > -inf.
/// A row that sees no key gives a zero row, lse = -inf and zero gradients. Hidden keys and values are never
/// used: NaN or Inf in them reaches no output and no gradient.
template <class T>
struct ScoreArgs {
  T scale = 1;
  T softcap = 0;
  bool causal = false;
  int64_t offset = 0;                      // position of query 0 among the keys
  const int64_t* batch_offsets = nullptr;  // [B], replaces offset when given
  int64_t window_left = -1, window_right = -1;
  const int64_t* key_lens = nullptr;  // valid lengths at b*lens_b_stride + i*lens_q_stride
  int64_t lens_b_stride = 0, lens_q_stride = 0;
  ScoreArray<uint8_t> mask;  // data null: none
  ScoreArray<T> bias;        // data null: none
  Normaliser normaliser = Normaliser::softmax;
  const T* additive = nullptr;  // w [D] of the additive score; null: dot product
  // Dropout of weights: weight (b,h,i,j) is kept iff weight_dropout_keeps(seed, b*H+h, i, j, threshold) and
  // then multiplied by keep_scale = 1/(1-p). threshold 0: no dropout. See kernels/dropout.h.
  uint64_t dropout_seed = 0;
  uint32_t dropout_threshold = 0;
  T keep_scale = 1;
};

/// Inputs of one attention call. With q_offsets / k_offsets ([B+1]) the batch is packed: sequence b holds
/// rows offsets[b] … offsets[b+1]-1 of the l axis (b_stride is then 0), Lq and Lk are the longest lengths,
/// and every index i, j counts from the sequence's own start.
template <class T>
struct AttentionInputs {
  AttentionDims dims;
  Strided<const T> q, k, v;
  const int64_t* q_offsets = nullptr;
  const int64_t* k_offsets = nullptr;
  ScoreArgs<T> rule;
};

/// Per-row results, element (b,h,i) at data[b*b_stride + h*h_stride + i*l_stride] (packed: see above).
/// For softmax `lse` = log Σ exp z; for sparsemax and entmax15 the threshold τ; for hard the maximum.
template <class T>
struct AttentionOutputs {
  Strided<T> out;  // [B,H,Lq,Dv]
  Strided<T> lse;  // [B,H,Lq]; data may be null
};

/// Gradients to compute; null data skips one. d_bias has the bias's broadcast strides and is added to
/// (hidden keys get nothing); d_additive [D] is added to; d_q, d_k, d_v are overwritten.
template <class T>
struct AttentionGrads {
  Strided<const T> out, lse, d_out;  // forward's results and the incoming gradient
  Strided<T> d_q, d_k, d_v;
  T* d_bias = nullptr;
  T* d_additive = nullptr;
};

/// Row statistics of the weights (before dropout), each [B,H,Lq] with the lse's strides; null data skips one.
template <class T>
struct AttentionStats {
  Strided<T> entropy;        // -Σ p log p, nats
  Strided<T> max_weight;     // largest weight
  Strided<T> argmax;         // its key (first on ties; -1 for an empty row)
  Strided<T> mean_distance;  // Σ p |i + offset - j|
  Strided<T> lse;            // as in AttentionOutputs
};

/// One position of a text that is being written: the query heads that share a key head, against the keys so far, which
/// lie in pages, key j in row j % page_rows of page j / page_rows:
///   z_j = scale · q·k_j + bias_j;  out = Σ_j softmax(z)_j v_j, zero without keys.
/// The same numbers as attention_forward() up to rounding.
struct PagedQuery {
  int64_t heads = 1, D = 0, Dv = 0, keys = 0;
  const float* q = nullptr;  // [heads, D]
  int64_t page_rows = 1;
  const float* const* k_pages = nullptr;  // row r of page n at k_pages[n] + k_offset + r*k_stride
  const float* const* v_pages = nullptr;  // the same with v
  int64_t k_offset = 0, v_offset = 0, k_stride = 0, v_stride = 0;
  float scale = 1;
  const float* bias = nullptr;  // of head h and key j at h*bias_stride + j; null: none
  int64_t bias_stride = 0;
  float* out = nullptr;  // [heads, Dv]
};
/// On this thread. Throws std::bad_alloc.
void attend_pages(const PagedQuery& query);

// Each throws std::bad_alloc when there is no working memory; its results are then undefined.
void attention_forward(const AttentionInputs<float>& in, const AttentionOutputs<float>& out);
void attention_backward(const AttentionInputs<float>& in, const AttentionGrads<float>& grads);
/// scores[(i - row_begin) * Lk + j] for the window; weights are before dropout. Lk is dims.Lk.
void attention_scores(const AttentionInputs<float>& in, const ScoreWindow& window, float* scores);
void attention_stats(const AttentionInputs<float>& in, const AttentionStats<float>& stats);

// The specification: plain loops, for float (sums in double) and double.
namespace reference {
template <class T>
void attention_forward(const AttentionInputs<T>& in, const AttentionOutputs<T>& out);
template <class T>
void attention_backward(const AttentionInputs<T>& in, const AttentionGrads<T>& grads);
template <class T>
void attention_scores(const AttentionInputs<T>& in, const ScoreWindow& window, T* scores);
template <class T>
void attention_stats(const AttentionInputs<T>& in, const AttentionStats<T>& stats);
}  // namespace reference

// f64 takes the specification itself.
inline void attention_forward(const AttentionInputs<double>& in, const AttentionOutputs<double>& out) {
  reference::attention_forward(in, out);
}
inline void attention_backward(const AttentionInputs<double>& in, const AttentionGrads<double>& grads) {
  reference::attention_backward(in, grads);
}
inline void attention_scores(const AttentionInputs<double>& in, const ScoreWindow& window, double* scores) {
  reference::attention_scores(in, window, scores);
}
inline void attention_stats(const AttentionInputs<double>& in, const AttentionStats<double>& stats) {
  reference::attention_stats(in, stats);
}

}  // namespace qkv::kernels
