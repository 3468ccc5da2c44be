// The f32 attention entry points.
#include "qkv/kernels/attention.h"

#include "qkv/kernels/attention_kernels.h"

namespace qkv::kernels {

void attention_forward(const AttentionInputs<float>& in, const AttentionOutputs<float>& out) noexcept {
  if (in.rule.normaliser == Normaliser::softmax && !in.rule.additive) {
    flash_forward(in, out);
  } else {
    reference::attention_forward(in, out);
  }
}
void attention_backward(const AttentionInputs<float>& in, const AttentionGrads<float>& grads) noexcept {
  if (in.rule.normaliser == Normaliser::softmax && !in.rule.additive) {
    flash_backward(in, grads);
  } else {
    reference::attention_backward(in, grads);
  }
}
void attention_scores(const AttentionInputs<float>& in, const ScoreWindow& window, float* scores) noexcept {
  reference::attention_scores(in, window, scores);
}
void attention_stats(const AttentionInputs<float>& in, const AttentionStats<float>& stats) noexcept {
  reference::attention_stats(in, stats);
}

}  // namespace qkv::kernels
