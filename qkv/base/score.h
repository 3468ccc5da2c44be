// The choices about scores and weights that every layer, from the kernels to a model's configuration, shares.
#pragma once

#include <cstdint>

namespace qkv {

/// What turns a row of scores into weights: softmax, sparsemax, 1.5-entmax, or all weight on the highest score.
enum class Normaliser : uint8_t { softmax, sparsemax, entmax15, hard };

/// A step on the way from a score to a weight: scaled product, after the softcap, after bias and masks, the weight.
enum class ScoreStage : uint8_t { raw, capped, biased, weights };

/// A part of a score matrix [B, H, Lq, Lk]: rows [row_begin, row_end) of one (b, h), at one stage.
struct ScoreWindow {
  int64_t b = 0, h = 0, row_begin = 0, row_end = 0;
  ScoreStage stage = ScoreStage::weights;
};

}  // namespace qkv
