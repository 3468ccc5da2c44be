// Vision Transformer: an image is a sequence of patches.
#pragma once

#include "qkv/nn/transformer.h"

namespace qkv {

/// Sizes and choices of a Vit.
struct VitConfig {
  int64_t height = 28, image_width = 28, channels = 1, patch = 4;
  int64_t width = 128, heads = 4, layers = 6, inner = 0, classes = 10;  // inner 0: 4·width
  Mechanism attention = "multi-head";
  double dropout = 0;
  double shown = 1;                          // fraction of the patches, drawn anew for each image, that training sees
  bool mean_pooling = false;                 // the mean of all patches goes to the head; no class token
  Positions positions = Positions::learned;  // learnt, or fixed ones of a grid; those of attention know no grid
};

/// Fixed positions of a grid, row by row [rows·columns, width]: the first half of the width is the row's, the second
/// half the column's. Throws ConfigError on an odd width and for a kind that has no fixed positions.
Tensor grid_positions(Positions kind, int64_t rows, int64_t columns, int64_t width);

/// Patches → linear projection (a convolution with stride = patch) → class token + positions → pre-norm layers with
/// GELU → layer norm of the class token (or the mean of the patches) → logits.
class Vit {
 public:
  /// Throws ConfigError unless the patch divides the image, and for a `shown` that is not in (0, 1] or that an
  /// attention by position alone cannot have.
  Vit(const VitConfig& config, Rng& rng);
  void visit(Visitor& see);
  const VitConfig& config() const { return config_; }

  /// images [B, channels, height, width], or [B, height, width] for one channel → logits [B, classes]. Traced as site
  /// "self"; token 0 is the class token (unless the patches are pooled), then the patches row by row. Throws
  /// ShapeError.
  Tensor forward(const Tensor& images, Context& ctx) const;
  /// Patches of the images, [B·patches, channels·patch²].
  Tensor patches(const Tensor& images) const;
  int64_t rows() const { return config_.height / config_.patch; }
  int64_t columns() const { return config_.image_width / config_.patch; }
  /// Index of the first patch among the tokens.
  int64_t first_patch() const { return config_.mean_pooling ? 0 : 1; }
  int64_t tokens() const { return first_patch() + rows() * columns(); }
  /// Of one image while training.
  int64_t training_tokens() const { return first_patch() + shown_patches(); }
  /// What is added to the tokens, [tokens, width]; the class token's fixed position is zero.
  const Tensor& positions() const { return positions_; }

 private:
  int64_t shown_patches() const;  // of one image while training
  /// Rows of `patches(images)` that a pass over B images reads, image by image: all, or `shown` drawn for each.
  std::vector<int64_t> seen_patches(int64_t B, int64_t shown, Context& ctx) const;

  VitConfig config_;
  Linear project_;
  Tensor class_token_, positions_;  // [1, C] or undefined, [tokens, C]
  TransformerStack stack_;
  Linear head_;
  Dropout dropout_;
};

}  // namespace qkv
