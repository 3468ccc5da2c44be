// What the tasks with a decoder-only language model share: its options, the loss of a packed batch, decoding.
#pragma once

#include <span>
#include <vector>

#include "qkv/data/knowledge.h"
#include "qkv/models/gpt.h"
#include "qkv/tasks/task.h"

namespace qkv {

/// attention, positions, layers, heads, width, block, tied, dropout.
void declare_gpt(Settings& settings);
/// Throws ConfigError on sizes and mechanisms that do not fit.
Gpt make_gpt(const Settings& settings, int64_t vocabulary);

/// Sequences one after another, no padding; the loss is over the places that have a target.
BatchLoss language_loss(const Gpt& model, std::span<const LanguageExample> examples, Context& ctx);

/// Mean loss of many examples, in batches.
struct MeanLoss {
  double nats = 0;
  int64_t targets = 0;
  double mean() const { return targets > 0 ? nats / static_cast<double>(targets) : 0; }
};
MeanLoss mean_loss(const Gpt& model, std::span<const LanguageExample> examples);

}  // namespace qkv
