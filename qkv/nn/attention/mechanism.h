// What an attention mechanism is made with; attention.cc lists the mechanisms, each is one file of this folder.
#pragma once

#include "qkv/nn/attention.h"

namespace qkv {

/// The part of a rule that a mechanism's configuration decides.
ScoreRule rule_of(const AttentionConfig& config, Context& ctx);
/// Self-attention of whole sequences from a mechanism's own parts.
Tensor self_forward(const Attention& attention, const Tensor& x, const AttentionCall& call, Context& ctx);
/// x [T, heads·width] as [T, heads, width].
Tensor split_heads(const Tensor& x, int64_t heads);

}  // namespace qkv
