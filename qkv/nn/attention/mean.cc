// Mean pooling: every key has the same score.
#include "qkv/nn/attention/mechanisms.h"

namespace qkv {

AttentionPlan MeanAttention::plan(const Tensor& memory, const Ragged& batch, Context&) const {
  AttentionPlan plan;
  plan.keys = Tensor::zeros({memory.dim(0), 1, 1}, memory.dtype());
  plan.values = split_heads(memory, 1);
  plan.memory = batch;
  plan.uniform = true;
  return plan;
}

}  // namespace qkv
