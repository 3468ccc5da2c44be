// Attention rollout: what reaches each token through all layers.
#pragma once

#include <span>

#include "qkv/nn/context.h"

namespace qkv {

/// R [tokens, tokens]: the product over the layers, first to last, of M = (Ā + I)/2 with Ā the mean of a layer's heads,
/// each row divided by its sum (a row that sees nothing passes only itself on): R = M_last ⋯ M_0. Row i says how much
/// of each token of the input reaches token i through attention and the residuals beside it; rows sum to 1.
/// Only for self-attention of one length. Throws ConfigError.
Tensor attention_rollout(std::span<const AttentionTrace* const> layers);

}  // namespace qkv
