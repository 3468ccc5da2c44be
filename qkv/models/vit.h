// Vision Transformer: an image is a sequence of patches.
#pragma once

#include "qkv/nn/transformer.h"

namespace qkv {

struct VitConfig {
  int64_t height = 28, image_width = 28, channels = 1, patch = 4;
  int64_t width = 128, heads = 4, layers = 6, inner = 0, classes = 10;  // inner 0: 4·width
  std::string attention = "multi-head";
  double dropout = 0;
};

/// Patches → linear projection (a convolution with stride = patch) → class token + learnt positions → pre-norm layers
/// with GELU → layer norm of the class token → logits.
class Vit {
 public:
  /// Throws ConfigError unless the patch divides the image.
  Vit(const VitConfig& config, Rng& rng);
  void visit(Visitor& see);
  const VitConfig& config() const { return config_; }

  /// images [B, channels, height, width], or [B, height, width] for one channel → logits [B, classes]. Traced as site
  /// "self"; token 0 is the class token, then the patches row by row. Throws ShapeError.
  Tensor forward(const Tensor& images, Context& ctx) const;
  /// Patches of the images, [B·patches, channels·patch²].
  Tensor patches(const Tensor& images) const;
  int64_t tokens() const { return 1 + (config_.height / config_.patch) * (config_.image_width / config_.patch); }

 private:
  VitConfig config_;
  Linear project_;
  Tensor class_token_, positions_;  // [1, C], [tokens, C]
  TransformerStack stack_;
  Linear head_;
  Dropout dropout_;
};

}  // namespace qkv
