// Stacks of Transformer layers over packed batches: encoder, decoder and decoder-only alike.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "qkv/nn/attention.h"
#include "qkv/nn/kv_cache.h"
#include "qkv/nn/layers.h"

namespace qkv {

/// Sizes and choices of a TransformerStack.
struct StackConfig {
  int64_t width = 256, heads = 8, kv_heads = 0, inner = 1024, layers = 4;
  Act act = Act::gelu;
  bool pre_norm = true;      // x + f(norm(x)); otherwise norm(x + f(x))
  bool final_norm = true;    // a layer norm after the last layer
  bool causal = false;       // a token sees itself and those before it
  bool cross = false;        // each layer also attends to a memory of the same width
  double dropout = 0;        // of attention weights and of what each sublayer adds
  double inner_dropout = 0;  // inside the feed-forward block
  Mechanism self_attention = "multi-head", cross_attention = "multi-head";
  Positions positions = Positions::none;  // what they do in self-attention; see positions.h
  int64_t block = 0;                      // longest sequence, for the synthesizer
  Normaliser normaliser = Normaliser::softmax;
};

/// One layer: self-attention, attention to the memory in a decoder, feed-forward block, and a norm for each.
struct TransformerLayer {
  TransformerLayer(const StackConfig& config, Rng& rng);
  void visit(Visitor& see);

  std::unique_ptr<Attention> self, cross;
  FeedForward feed_forward;
  LayerNorm self_norm, cross_norm, feed_norm;
};

/// The memory a decoder's layers attend to, with each layer's keys and values ready.
using MemoryPlans = std::vector<AttentionPlan>;

/// What a stack remembers of the tokens it has read, row by row.
struct StackCache {
  std::vector<KvCache> layers;
  std::vector<int64_t> lengths;  // of each row

  /// Keeps rows[i] as row i.
  void select(std::span<const int64_t> rows);
};

/// Layers on top of each other, with the caches and memories they need.
class TransformerStack {
 public:
  TransformerStack() = default;
  /// Throws ConfigError on sizes and mechanisms that do not fit.
  TransformerStack(const StackConfig& config, Rng& rng);
  void visit(Visitor& see);
  const StackConfig& config() const { return config_; }
  const std::vector<TransformerLayer>& layers() const { return layers_; }
  const LayerNorm& final_norm() const { return final_norm_; }

  /// x [T, width] packed as `batch` says → [T, width]. Self-attention is traced as `site`, attention to the memory
  /// (given by plan_memory, sequence b of x attending to sequence b of it) as "cross".
  Tensor forward(const Tensor& x, const Ragged& batch, const std::string& site, Context& ctx,
                 const MemoryPlans& memory = {}) const;
  /// Rows `wanted` of what forward() gives, one of each sequence in order → [sequences, width]. The last layer computes
  /// nothing for the others where the mechanism allows it: the same numbers up to rounding, sooner.
  Tensor forward_one(const Tensor& x, const Ragged& batch, std::span<const int64_t> wanted, const std::string& site,
                     Context& ctx) const;
  /// The keys and values of a memory [Tk, width] for every layer.
  MemoryPlans plan_memory(const Tensor& memory, const Ragged& batch, Context& ctx) const;

  /// A cache for `rows` sequences that have read nothing.
  StackCache start(int64_t rows) const;
  /// Reads fresh tokens x [N, width] (see attend_cached) after what the cache holds, and adds them to it. `queries`
  /// says which rows of x attend to which sequence of the memory, when there is one.
  Tensor extend(const Tensor& x, const Ragged& fresh, StackCache& cache, Context& ctx, const MemoryPlans& memory = {},
                const Ragged& queries = {}) const;

 private:
  template <class SelfFn, class CrossFn>
  Tensor run(Tensor x, Context& ctx, const SelfFn& self, const CrossFn& cross,
             std::span<const int64_t> wanted = {}) const;

  StackConfig config_;
  std::vector<TransformerLayer> layers_;
  LayerNorm final_norm_;
};

}  // namespace qkv
