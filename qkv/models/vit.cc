// The Vision Transformer.
#include "qkv/models/vit.h"

#include "qkv/base/error.h"

namespace qkv {
namespace {

StackConfig stack_of(const VitConfig& c) {
  StackConfig s;
  s.width = c.width;
  s.heads = c.heads;
  s.layers = c.layers;
  s.inner = c.inner > 0 ? c.inner : 4 * c.width;
  s.dropout = c.dropout;
  s.self_attention = c.attention;
  return s;
}

}  // namespace

Vit::Vit(const VitConfig& config, Rng& rng) : config_(config), dropout_(config.dropout) {
  check_size("[vit] patch", config.patch);
  check_size("[vit] channels", config.channels);
  check_size("[vit] image height", config.height);
  check_size("[vit] image width", config.image_width);
  if (config.height % config.patch != 0 || config.image_width % config.patch != 0) {
    throw ConfigError("[vit] patches of " + std::to_string(config.patch) + " do not fill an image of " +
                      std::to_string(config.height) + " by " + std::to_string(config.image_width));
  }
  project_ = Linear(config.channels * config.patch * config.patch, config.width, rng);
  class_token_ = parameter(Tensor::randn({1, config.width}, rng, 0.02));
  positions_ = parameter(Tensor::randn({tokens(), config.width}, rng, 0.02));
  stack_ = TransformerStack(stack_of(config), rng);
  head_ = Linear(config.width, config.classes, rng);
}

void Vit::visit(Visitor& see) {
  see("patch", project_);
  see("class_token", class_token_);
  see("positions", positions_);
  see("stack", stack_);
  see("head", head_);
}

Tensor Vit::patches(const Tensor& images) const {
  const int64_t C = config_.channels, h = config_.height, w = config_.image_width, p = config_.patch;
  const bool plain = images.rank() == 3 && C == 1;
  if ((!plain && images.rank() != 4) || images.dim(-1) != w || images.dim(-2) != h || (!plain && images.dim(1) != C)) {
    throw ShapeError("[vit] images=" + images.shape().str() + "; expected " + Shape{images.dim(0), C, h, w}.str());
  }
  const int64_t B = images.dim(0);
  const Tensor cut = permute(reshape(images, {B, C, h / p, p, w / p, p}), {0, 2, 4, 1, 3, 5});
  return reshape(contiguous(cut), {B * (h / p) * (w / p), C * p * p});
}

Tensor Vit::forward(const Tensor& images, Context& ctx) const {
  const int64_t B = images.dim(0), n = tokens();
  const Tensor rows = concat({class_token_, project_.forward(patches(images))}, 0);  // [1 + B·patches, C]
  std::vector<int64_t> at, place, first;
  for (int64_t b = 0; b < B; ++b) {
    first.push_back(b * n);
    for (int64_t i = 0; i < n; ++i) {
      at.push_back(i == 0 ? 0 : b * (n - 1) + i);
      place.push_back(i);
    }
  }
  const Tensor x = dropout_.forward(add(gather_rows(rows, at), gather_rows(positions_, place)), ctx);  // [B·tokens, C]
  const Tensor out = stack_.forward(x, Ragged::equal(B, n), "self", ctx);
  return head_.forward(gather_rows(out, first));
}

}  // namespace qkv
