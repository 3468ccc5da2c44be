// A causal stack in the middle of writing: what Gpt and Transformer decode with.
#pragma once

#include "qkv/models/decoding.h"
#include "qkv/models/embedded.h"
#include "qkv/nn/token_step.h"

namespace qkv {

/// What the steps are made of; the model that owns it must outlive them.
struct StepParts {
  const EmbeddedTokens& embed;
  const TransformerStack& stack;
  Tensor head_weight, head_bias;  // of the product that makes scores of hidden rows
};

/// One row per sequence; with a memory, each attends to the sequence of it that it began with.
class StackSteps final : public StepDecoder {
 public:
  StackSteps(const StepParts& parts, int64_t rows, MemoryPlans memory = {});

  /// Reads the rows' first tokens all at once.
  void read(const TokenBatch& tokens);
  int64_t rows() const override { return static_cast<int64_t>(cache_.lengths.size()); }
  Tensor step(std::span<const int64_t> tokens) override;
  void select(std::span<const int64_t> rows) override;

 private:
  Tensor extend(std::span<const int64_t> ids, std::span<const int64_t> positions, const Ragged& fresh);

  StepParts parts_;
  Context ctx_;
  StackCache cache_;
  MemoryPlans memory_;
  std::vector<int64_t> sentence_;    // of each row: its sequence of the memory
  std::unique_ptr<TokenStep> step_;  // null: the general way
  Tensor more_positions_;
};

}  // namespace qkv
