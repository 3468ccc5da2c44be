// Mean pooling: every key has the same score.
#include "qkv/nn/attention/mechanism.h"

namespace qkv {
namespace {

/// c = (1/n) Σ_j h_j, whatever the query.
class MeanAttention final : public Attention {
 public:
  MeanAttention(const AttentionConfig& config, Rng&) : width_(config.memory) {}
  void visit(Visitor&) override {}
  int64_t width() const override { return width_; }
  AttentionPlan plan(const Tensor& memory, const Ragged& batch, Context&) const override {
    AttentionPlan plan;
    plan.keys = Tensor::zeros({memory.dim(0), 1, 1}, memory.dtype());
    plan.values = split_heads(memory, 1);
    plan.memory = batch;
    plan.uniform = true;
    return plan;
  }

 private:
  int64_t width_ = 0;
};

}  // namespace

std::unique_ptr<Attention> make_mean(const AttentionConfig& config, Rng& rng) {
  return std::make_unique<MeanAttention>(config, rng);
}

}  // namespace qkv
