// What the cases that train a model share: configurations from a case's sizes, costs, and updates as work.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "qkv/app/bench/cases.h"
#include "qkv/models/gpt.h"
#include "qkv/models/transformer.h"

namespace qkv::bench {

GptConfig gpt_config(const nlohmann::json& sizes);
/// Post-norm with learned positions and three tables, as PyTorch's nn.Transformer.
TransformerConfig transformer_config(const nlohmann::json& sizes);

/// Operations for one token of a layer: q, k, v, output and the feed-forward block, and attention to `keys`.
double layer_flops(double width, double inner, double keys);

/// A model and the batches one run trains it on.
struct Training {
  std::vector<NamedParameter> parameters;
  std::vector<std::function<Tensor(Context&)>> losses = {};  // one per batch
  double tokens = 0, flops = 0;                              // of the forward passes
};
/// One update of AdamW for each loss.
Work training_work(Training training);

}  // namespace qkv::bench
