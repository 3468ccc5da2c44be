// Steps in few calls where the stack allows it, by tensors otherwise.
#include "qkv/models/stack_steps.h"

#include <algorithm>
#include <numeric>

#include "qkv/base/error.h"
#include "qkv/core/autograd.h"

namespace qkv {

StackSteps::StackSteps(const StepParts& parts, int64_t rows, MemoryPlans memory)
    : parts_(parts), cache_(parts.stack.start(rows)), memory_(std::move(memory)), sentence_(static_cast<size_t>(rows)) {
  std::iota(sentence_.begin(), sentence_.end(), int64_t{0});
  const Tensor& table = parts.embed.table();
  if (table.dtype() != DType::f32 || !table.is_contiguous()) return;
  step_ = TokenStep::make(parts_.stack, parts_.head_weight, parts_.head_bias, memory_);
}

Tensor StackSteps::extend(std::span<const int64_t> ids, std::span<const int64_t> positions, const Ragged& fresh) {
  std::vector<int64_t> counts(memory_.empty() ? 0 : static_cast<size_t>(memory_[0].memory.sequences()), 0);
  if (!memory_.empty()) {
    for (int64_t b : sentence_) ++counts[static_cast<size_t>(b)];
  }
  const Tensor x = parts_.embed.forward(ids, positions, ctx_);
  return parts_.stack.extend(x, fresh, cache_, ctx_, memory_, Ragged(counts));
}

void StackSteps::read(const TokenBatch& tokens) {
  NoGrad guard;
  extend(tokens.ids, tokens.batch.positions(), tokens.batch);
}

Tensor StackSteps::step(std::span<const int64_t> tokens) {
  NoGrad guard;
  if (static_cast<int64_t>(tokens.size()) != rows()) {
    throw ShapeError("[decoding] " + std::to_string(tokens.size()) + " tokens for " + std::to_string(rows()) + " rows");
  }
  if (!step_ || rows() == 0) {
    const Tensor hidden = extend(tokens, cache_.lengths, Ragged::equal(rows(), 1));
    return linear(hidden, parts_.head_weight, parts_.head_bias);
  }
  parts_.embed.write(tokens, cache_.lengths, more_positions_, step_->input(rows()));
  return step_->run(cache_, sentence_);
}

void StackSteps::select(std::span<const int64_t> rows) {
  cache_.select(rows);
  std::vector<int64_t> kept;
  for (int64_t r : rows) kept.push_back(sentence_[static_cast<size_t>(r)]);
  sentence_ = std::move(kept);
  if (!memory_.empty() && !std::is_sorted(sentence_.begin(), sentence_.end())) {
    throw ConfigError("[transformer] rows of a sentence must stay together, in the order of the sentences");
  }
}

}  // namespace qkv
