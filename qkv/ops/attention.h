// Attention as a differentiable operation, with every rule people use, in memory linear in the length.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "qkv/base/score.h"
#include "qkv/core/tensor.h"

namespace qkv {

/// Booleans broadcastable (right-aligned) to [B,H,Lq,Lk]; true = the key takes part. The last axis may be shorter
/// than Lk (but not 1): the keys beyond it are hidden. Copies share the values.
struct BoolMask {
  Shape shape;
  std::shared_ptr<const std::vector<uint8_t>> values;
  bool defined() const { return values != nullptr; }
};
/// Throws ShapeError when the count differs from the shape's.
BoolMask bool_mask(std::vector<uint8_t> values, const Shape& shape);

/// Which keys a query sees, and how its scores become weights. Query i is at position i + offset among the keys.
struct ScoreRule {
  std::optional<double> scale{};  // β of softmax(β q·k); 1/√D when not given (1 for additive scores)
  double softcap = 0;             // c·tanh(z/c) when positive
  bool causal = false;            // key j is visible iff j ≤ i + offset
  int64_t offset = 0;
  std::vector<int64_t> batch_offsets{};         // [B], replaces offset
  int64_t window_left = -1, window_right = -1;  // -1: unlimited; else keys i+offset-left … i+offset+right
  std::vector<int64_t> key_lens{};              // valid lengths, [B] or [B·Lq]
  BoolMask mask{};                              // true = takes part
  Tensor bias{};                                // added to the scores, broadcastable like the mask; differentiable
  Normaliser normaliser = Normaliser::softmax;
  Tensor additive{};   // w [D]: score wᵀ tanh(q + k) in place of q·k; differentiable
  double dropout = 0;  // of the weights
  uint64_t dropout_seed = 0;
  std::vector<int64_t> q_offsets{}, k_offsets{};  // [B+1]: packed sequences, see attention()
};

/// normaliser(q kᵀ·scale) v under `rule`, never storing the [Lq, Lk] scores.
///   q [B,H,Lq,D];  k [B,Hkv,Lk,D], v [B,Hkv,Lk,Dv], H % Hkv == 0;  result [B,H,Lq,Dv]
///   or without heads: q [B,Lq,D], k [B,Lk,D], v [B,Lk,Dv] → [B,Lq,Dv]
///   or packed (rule.q_offsets and k_offsets given): q [Tq,H,D], k [Tk,Hkv,D], v [Tk,Hkv,Dv] → [Tq,H,Dv], where
///   sequence b owns rows q_offsets[b] … q_offsets[b+1]-1 and keys k_offsets[b] … k_offsets[b+1]-1.
/// A query that sees no key yields zero, with zero gradient. NaN or Inf behind a mask reaches nothing.
/// `hard` weights are constants to the gradient: only v receives one. Throws ShapeError, ConfigError.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const ScoreRule& rule = {});

/// Packed self-attention on the result of one fused projection: qkv [T, (H + 2·Hkv)·D] holds the queries, then the
/// keys, then the values of each row; rule.q_offsets cuts T into sequences (k_offsets is the same) → [T, H·D].
/// The same numbers as attention() on the three parts, without splitting them or joining their gradients by copies.
Tensor self_attention(const Tensor& qkv, int64_t H, int64_t Hkv, const ScoreRule& rule);

/// The scores or weights of head h of batch b for queries [row_begin, row_end) → [rows, Lk], recomputed on request.
/// Hidden keys are -inf at stage biased and 0 at stage weights; dropout is not applied.
Tensor attention_scores(const Tensor& q, const Tensor& k, const ScoreRule& rule, const ScoreWindow& window);

/// All heads and rows at once → [B,H,Lq,Lk]: for maps of small inputs (not for packed batches).
Tensor attention_score_array(const Tensor& q, const Tensor& k, const ScoreRule& rule,
                             ScoreStage stage = ScoreStage::weights);

/// Statistics of each row of weights, [B,H,Lq] each (packed: [Tq,H]), in memory linear in the length.
struct AttentionStatistics {
  Tensor lse;            // log Σ exp z (softmax; otherwise the normaliser's threshold)
  Tensor entropy;        // nats
  Tensor max_weight;     // largest weight
  Tensor argmax;         // its key, -1 for an empty row
  Tensor mean_distance;  // Σ weight·|i + offset - j|
};
/// Those of attention(q, k, …) under `rule`; dropout is not applied. Throws ShapeError, ConfigError.
AttentionStatistics attention_statistics(const Tensor& q, const Tensor& k, const ScoreRule& rule = {});

/// past [B,Hkv,P,D] followed by new [B,Hkv,L,D] → [B,Hkv,P+L,D]; an undefined past gives `fresh` itself.
Tensor extend_cache(const Tensor& past, const Tensor& fresh);

}  // namespace qkv
