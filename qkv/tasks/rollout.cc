// The product of mixed layers.
#include "qkv/tasks/rollout.h"

#include "qkv/base/error.h"
#include "qkv/core/autograd.h"
#include "qkv/ops/ops.h"

namespace qkv {
namespace {

// (Ā + I)/2, [n, n].
Tensor mixed(const AttentionTrace& layer) {
  const int64_t n = layer.Lq;
  Tensor mean = Tensor::zeros({n, n});
  for (int64_t h = 0; h < layer.H; ++h) {
    const Tensor one = layer.scores({.b = 0, .h = h, .row_begin = 0, .row_end = n});
    for (int64_t i = 0; i < mean.numel(); ++i) mean.f32()[i] += one.f32()[i] / static_cast<float>(layer.H);
  }
  for (int64_t i = 0; i < n; ++i) {
    float* row = mean.f32() + i * n;
    float sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += row[j];
    for (int64_t j = 0; j < n; ++j) row[j] = sum > 0 ? row[j] / (2 * sum) : 0;
    row[i] += sum > 0 ? 0.5F : 1.0F;
  }
  return mean;
}

}  // namespace

Tensor attention_rollout(std::span<const AttentionTrace* const> layers) {
  if (layers.empty()) throw ConfigError("this model has no attention to show");
  const NoGrad no_grad;
  Tensor product;
  for (const AttentionTrace* layer : layers) {
    if (layer->Lq != layers[0]->Lq || layer->Lk != layer->Lq) {
      throw ConfigError("a rollout needs self-attention of one length in every layer: its queries are its keys");
    }
    product = product.defined() ? matmul(mixed(*layer), product) : mixed(*layer);
  }
  return product;
}

}  // namespace qkv
