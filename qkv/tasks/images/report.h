// What a report shows of a model that tells pictures apart: confusion, mistakes, and what it learnt about places.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qkv/core/tensor.h"
#include "qkv/data/images.h"
#include "qkv/figures/figures.h"

namespace qkv {

/// What a model said about N labelled images.
struct Classified {
  int64_t classes = 0;
  std::vector<int64_t> labels = {};       // [N]
  std::vector<float> probabilities = {};  // [N, classes]

  int64_t predicted(int64_t i) const;  // the most probable class
  double confidence(int64_t i) const;  // its probability
  double accuracy() const;             // share of images whose most probable class is the label
  double loss() const;                 // mean of -log p(label)
  /// How many images of class [label] were taken for class [predicted].
  std::vector<std::vector<int64_t>> confusion() const;
  /// Images taken for a wrong class, the surest first, at most `most`.
  std::vector<int64_t> confident_mistakes(size_t most) const;
};

/// The positions a model adds to its tokens.
struct PositionGrid {
  int64_t rows = 0, columns = 0, first_patch = 1;
  Tensor positions = {};  // [tokens, width]
  bool learned = true;
};

struct ImageReport {
  Classified result;
  const ImageSet& images;  // those of the result
  const std::vector<std::string>& classes;
  PositionGrid grid;
};

/// Cosine similarity of the positions of patches a and b, [patches, patches].
std::vector<float> position_similarities(const PositionGrid& grid);

/// Image i of a set.
Bitmap bitmap_of(const ImageSet& set, int64_t i);

/// Confusion matrix, the most confident mistakes as pictures, similarities of positions.
std::vector<Section> image_sections(const ImageReport& shown);

}  // namespace qkv
