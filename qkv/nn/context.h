// Context: what a forward pass needs besides its inputs; it is passed down, never global.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "qkv/base/rng.h"
#include "qkv/base/score.h"
#include "qkv/core/tensor.h"

namespace qkv {

/// How one query met one key of one head: every number from the two vectors to what the key handed over. Empty vectors
/// where a mechanism has none.
struct AttentionCell {
  std::vector<double> query = {}, key = {};  ///< [D], as the score takes them: projected, turned by positions
  std::vector<double> score_weight = {};     ///< [D], w of additive scores wᵀ tanh(q + k)
  std::vector<double> terms = {};            ///< [D], q·k (or w·tanh(q + k)) dimension by dimension
  double product = 0;                        ///< Σ terms
  double scale = 1;                          ///< the product is multiplied by this
  double softcap = 0;                        ///< c of c·tanh(z/c); 0: none
  double raw = 0, capped = 0, biased = 0;    ///< the score at each stage; biased is -inf where the key is hidden
  double weight = 0;                         ///< after the normaliser
  double largest = 0;                        ///< the row's largest score
  double total = 0;                          ///< Σ exp(score - largest) of the row: what softmax divides by
  Normaliser normaliser = Normaliser::softmax;
  std::vector<double> value = {};   ///< [Dv], what the key hands over
  std::vector<double> output = {};  ///< [Dv], Σ weight·value over all keys: what the head gives this query
};

struct TracedCall;  // attention.h

/// The weights of one attention call, to be computed when somebody looks: which site of the model ("encoder",
/// "decoder", "cross", "self"), which layer, and a function that hands out rows of one head of one sequence.
struct AttentionTrace {
  std::string site;
  int layer = 0;
  int64_t B = 0, H = 0, Lq = 0, Lk = 0;
  bool causal = false;
  /// Scores or weights of window (b, h, rows) → [rows, Lk]; a mechanism without scores answers only `weights`.
  std::function<Tensor(const ScoreWindow&)> scores;
  /// How query i met key j in head h of sequence b; not set where weights are not computed from queries and keys.
  std::function<AttentionCell(int64_t b, int64_t h, int64_t i, int64_t j)> cell = {};
  /// What both are computed from, for who keeps it; null where `cell` is not set.
  std::shared_ptr<const TracedCall> call = {};
};

/// Collects the attention of a forward pass. Looking never changes the result.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  /// Called at every attention of the pass, in order.
  virtual void see(AttentionTrace trace) = 0;
};

/// A TraceSink that keeps everything in order.
class TraceList final : public TraceSink {
 public:
  void see(AttentionTrace trace) override { traces_.push_back(std::move(trace)); }
  const std::vector<AttentionTrace>& traces() const { return traces_; }

 private:
  std::vector<AttentionTrace> traces_;
};

/// Training flag, source of dropout seeds and trace sink of one forward pass.
class Context {
 public:
  /// For inference: no dropout.
  Context() = default;
  /// For training step `step` of a run with this seed.
  Context(uint64_t seed, uint64_t step) : training_(true), seed_(mix64(seed ^ mix64(step))) {}
  /// For one of several parts of the step's sequences.
  Context(uint64_t seed, uint64_t step, uint64_t part) : Context(seed, step) { seed_ = mix64(seed_ ^ mix64(~part)); }

  bool training() const { return training_; }
  /// A new seed for each dropout of the pass, in the order of the calls.
  uint64_t next_seed() { return mix64(seed_ + calls_++); }

  TraceSink* trace = nullptr;

 private:
  bool training_ = false;
  uint64_t seed_ = 0, calls_ = 0;
};

}  // namespace qkv
