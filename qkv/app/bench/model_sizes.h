// Models built from a case's sizes, and what their layers cost.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "qkv/models/gpt.h"
#include "qkv/models/transformer.h"

namespace qkv::bench {

GptConfig gpt_config(const nlohmann::json& sizes);
/// Post-norm with learned positions and three tables, as PyTorch's nn.Transformer.
TransformerConfig transformer_config(const nlohmann::json& sizes);

/// Operations for one token of a layer: q, k, v, output and the feed-forward block, and attention to `keys`.
double layer_flops(double width, double inner, double keys);

}  // namespace qkv::bench
