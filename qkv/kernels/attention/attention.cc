// The f32 attention entry points: the kernel that fits the rule.
#include "qkv/kernels/attention/attention.h"

#include "qkv/kernels/attention/variants.h"

namespace qkv::kernels {
namespace {

bool fits_flash(const ScoreArgs<float>& rule) { return rule.normaliser == Normaliser::softmax && !rule.additive; }

}  // namespace

void attention_forward(const AttentionInputs<float>& in, const AttentionOutputs<float>& out) {
  fits_flash(in.rule) ? flash_forward(in, out) : whole_rows_forward(in, out);
}

void attention_backward(const AttentionInputs<float>& in, const AttentionGrads<float>& grads) {
  fits_flash(in.rule) ? flash_backward(in, grads) : whole_rows_backward(in, grads);
}

}  // namespace qkv::kernels
