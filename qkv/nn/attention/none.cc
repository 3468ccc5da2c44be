// No attention at all: what a mechanism is measured against.
#include "qkv/nn/attention/mechanism.h"

namespace qkv {
namespace {

/// No context: width 0, nothing to learn.
class NoAttention final : public Attention {
 public:
  NoAttention(const AttentionConfig&, Rng&) {}
  void visit(Visitor&) override {}
  int64_t width() const override { return 0; }
  AttentionPlan plan(const Tensor&, const Ragged&, Context&) const override { return {}; }
};

}  // namespace

std::unique_ptr<Attention> make_none(const AttentionConfig& config, Rng& rng) {
  return std::make_unique<NoAttention>(config, rng);
}

}  // namespace qkv
