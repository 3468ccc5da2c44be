// What the tasks with a decoder-only language model share: its options, the loss of a packed batch, decoding.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "qkv/data/knowledge.h"
#include "qkv/models/gpt.h"
#include "qkv/tasks/task.h"

namespace qkv {

/// attention, positions, layers, heads, width, block, tied, dropout.
void declare_gpt(Settings& settings);
/// Throws ConfigError on sizes and mechanisms that do not fit.
Gpt make_gpt(const Settings& settings, int64_t vocabulary);

/// Sequences one after another, no padding; the loss is the mean over the places that have a target. Where
/// `span_weight` is not 1, a target after a sequence's last mask (a hidden span, an answer) counts that much:
/// Σ w·loss / Σ w. The few characters that carry a fact would otherwise drown among those that carry none. Without any
/// example there is no loss.
BatchLoss language_loss(const Gpt& model, std::span<const LanguageExample> examples, Context& ctx,
                        double span_weight = 1);

/// Mean loss of many examples, in batches that the processes share.
struct MeanLoss {
  double nats = 0;
  int64_t targets = 0;
  double mean() const { return targets > 0 ? nats / static_cast<double>(targets) : 0; }
};
MeanLoss mean_loss(const Gpt& model, std::span<const LanguageExample> examples, Processes& processes);
/// The same of `n` examples that are made when their batch is: example i has length(i) tokens, and make(first, last)
/// gives those of a batch.
MeanLoss mean_loss(const Gpt& model, int64_t n, const std::function<int64_t(int64_t)>& length,
                   const std::function<std::vector<LanguageExample>(int64_t, int64_t)>& make, Processes& processes);

/// Traces the reading of `ids`: one token per row, and for each the most likely next tokens.
TracedExample trace_reading(const Gpt& model, const std::vector<int64_t>& ids,
                            const std::function<std::string(int64_t)>& name);

}  // namespace qkv
