// The choices about scores and weights that every layer, from the kernels to a model's configuration, shares.
#pragma once

#include <cstdint>

#include "qkv/base/names.h"

namespace qkv {

/// What turns a row of scores into weights: softmax, sparsemax, 1.5-entmax, or all weight on the highest score.
enum class Normaliser : uint8_t { softmax, sparsemax, entmax15, hard };
template <>
struct Names<Normaliser> {
  static constexpr const char* what = "normaliser";
  static constexpr NameRow<Normaliser> rows[] = {{Normaliser::softmax, "softmax"},
                                                 {Normaliser::sparsemax, "sparsemax"},
                                                 {Normaliser::entmax15, "entmax15"},
                                                 {Normaliser::hard, "hard"}};
};

/// How a query meets a key when no scale is given: q·k, or q·k/√D.
enum class Score : uint8_t { dot, scaled_dot };
template <>
struct Names<Score> {
  static constexpr const char* what = "score";
  static constexpr NameRow<Score> rows[] = {{Score::dot, "dot", "scale 1"},
                                            {Score::scaled_dot, "scaled-dot", "scale 1/√D"}};
};

/// A step on the way from a score to a weight: scaled product, after the softcap, after bias and masks, the weight.
enum class ScoreStage : uint8_t { raw, capped, biased, weights };
template <>
struct Names<ScoreStage> {
  static constexpr const char* what = "stage of the scores";
  static constexpr NameRow<ScoreStage> rows[] = {{ScoreStage::raw, "raw", "scale·q·k"},
                                                 {ScoreStage::capped, "capped", "after the softcap"},
                                                 {ScoreStage::biased, "biased", "after masks"},
                                                 {ScoreStage::weights, "weights"}};
};

/// A part of a score matrix [B, H, Lq, Lk]: rows [row_begin, row_end) of one (b, h), at one stage.
struct ScoreWindow {
  int64_t b = 0, h = 0, row_begin = 0, row_end = 0;
  ScoreStage stage = ScoreStage::weights;
};

}  // namespace qkv
