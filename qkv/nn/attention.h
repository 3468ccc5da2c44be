// Attention mechanisms behind one interface, and the one table that lists them.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "qkv/nn/layers.h"
#include "qkv/nn/positions.h"
#include "qkv/ops/attention_plan.h"

namespace qkv {

/// Sizes and choices of a mechanism; each reads what concerns it.
struct AttentionConfig {
  int64_t query = 0;                      // width of the queries
  int64_t memory = 0;                     // width of the memory; of the input itself in self-attention
  int64_t key = 0;                        // width of projected queries and keys; 0: the query's
  int64_t value = 0;                      // width of projected values; 0: the memory's (multi-head: the query's)
  int64_t heads = 1;                      // multi-head and synthesizer
  int64_t kv_heads = 0;                   // grouped queries; 0: as many as heads
  bool self = false;                      // queries and memory are the same rows: one fused projection
  Positions positions = Positions::none;  // of self-attention: those that turn queries and keys
  bool bias = true;                       // of projections, where the mechanism allows it
  int64_t block = 0;                      // synthesizer: longest sequence
  double dropout = 0;                     // of the weights, while training
  std::optional<double> scale;            // of the scores; not given: the mechanism's own
  Normaliser normaliser = Normaliser::softmax;
};

/// Who attends to whom in one call, and under which name it is traced.
struct AttentionCall {
  Ragged queries, memory;  // sequence b of the queries attends to sequence b of the memory
  bool causal = false;     // query i sees keys 0 … i of its sequence
  Tensor bias;             // added to the scores, broadcastable to [B, heads, Lq, Lk]
  std::string site = "cross";
  int layer = 0;
};

/// Queries, keys and values of the same rows: what self-attention works on, token by token if need be.
struct SelfParts {
  Tensor q;        // [T, H, D]
  Tensor k, v;     // [T, Hkv, D], [T, Hkv, Dv]
  ScoreRule rule;  // without masks and offsets
  Tensor output_weight, output_bias;
};

/// Softmax self-attention whose queries, keys and values are the columns of one product, [H·D | Hkv·D | Hkv·Dv].
struct JointParts {
  Tensor weight, bias;  // of that product; the bias may be undefined
  Tensor output_weight, output_bias;
  int64_t heads = 1, kv_heads = 1, D = 0, Dv = 0;
  Positions positions = Positions::none;  // that turn queries and keys
  std::optional<double> scale;            // as AttentionConfig's
};

/// A mechanism: what it learns, and how queries attend to a memory. A custom one defines visit(), width() and
/// plan(); the rest has a default that follows from the plan.
class Attention {
 public:
  virtual ~Attention() = default;
  /// Shows every parameter to the visitor, as any module does.
  virtual void visit(Visitor& see) = 0;

  /// Width of the context; 0 when there is none.
  virtual int64_t width() const = 0;
  /// Keys, values and the rest of what attending to this memory [Tk, memory] needs. Undefined for "none".
  virtual AttentionPlan plan(const Tensor& memory, const Ragged& batch, Context& ctx) const = 0;
  /// Context of every query: query [Tq, C], memory [Tk, M] → [Tq, width]. In self-attention `memory` is `query`.
  /// A trace sink in ctx is handed the weights; the result is the same. Throws ShapeError.
  virtual Tensor forward(const Tensor& query, const Tensor& memory, const AttentionCall& call, Context& ctx) const;
  /// Self-attention's parts for rows x [T, C] at the given positions of their sequences: what a cache keeps.
  virtual SelfParts project(const Tensor& x, std::span<const int64_t> positions, Context& ctx) const;
  /// Whether it heeds AttentionConfig::positions and a bias for each head, so that positions may come that way.
  virtual bool takes_positions() const { return false; }
  /// Whether a query's weights depend on its place in the sequence, so that plan() does not suffice and forward() must
  /// be given whole sequences.
  virtual bool goes_by_place() const { return false; }
  /// What it consists of if it is such a self-attention: its tokens then take few calls each (token_step.h).
  virtual std::optional<JointParts> joint_parts() const { return std::nullopt; }
};

/// Context of every query with a plan at hand, traced.
Tensor attend(const Tensor& query, const AttentionPlan& plan, const AttentionCall& call, Context& ctx);
/// Keys [Tk, Hkv, D] and values [Tk, Hkv, Dv] of all sequences of a call.
struct KeysAndValues {
  Tensor keys;    ///< as the scores take them
  Tensor values;  ///< what they hand over
};
/// What the weights of one attention call, and the numbers behind them, are computed from.
struct TracedCall {
  Tensor q, k, v;  ///< [Tq, H, D], [Tk, Hkv, D], [Tk, Hkv, Dv]
  ScoreRule rule;  ///< with the offsets of the sequences
};
/// A look at that call.
AttentionTrace trace_of(std::string site, int layer, TracedCall call);
/// Weights [H, Lq, Lk] of one sequence as they are: nothing is behind them.
AttentionTrace trace_of_weights(std::string site, int layer, Tensor weights);
/// Hands the weights of queries q [Tq, heads, D] to the context's sink, if there is one.
void trace_attention(const Tensor& q, const KeysAndValues& memory, const ScoreRule& rule, const AttentionCall& call,
                     Context& ctx);

/// One row of the table of mechanisms.
struct AttentionSpec {
  const char* name;
  const char* summary;
  bool in_cross, in_self;  // where it makes sense
  std::unique_ptr<Attention> (*make)(const AttentionConfig& config, Rng& rng);
};
/// All mechanisms. A new one is one file in attention/ and one row here.
std::span<const AttentionSpec> attention_table();
/// Names of the mechanisms that make sense as self-attention, or as attention to a memory.
std::vector<std::string> attention_names(bool self);
/// Throws ConfigError listing the mechanisms that exist.
const AttentionSpec& find_attention(const std::string& name);

/// What a model's configuration says about its attention: a name of the table, or a factory.
class Mechanism {
 public:
  /// Makes a mechanism of the sizes that the model asks for.
  using Factory = std::function<std::unique_ptr<Attention>(const AttentionConfig& config, Rng& rng)>;

  Mechanism(const char* name) : name_(name) {}             // NOLINT: a name is a mechanism
  Mechanism(std::string name) : name_(std::move(name)) {}  // NOLINT
  /// `name` is for messages.
  template <std::invocable<const AttentionConfig&, Rng&> F>
  Mechanism(F make, std::string name = "own") : name_(std::move(name)), make_(std::move(make)) {}  // NOLINT

  const std::string& name() const { return name_; }
  /// Throws ConfigError when the name is unknown or cannot be used there, or the sizes do not fit.
  std::unique_ptr<Attention> make(const AttentionConfig& config, Rng& rng) const;

 private:
  std::string name_;
  Factory make_;  // empty: the table's
};

}  // namespace qkv
