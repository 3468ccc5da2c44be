// Labelled images: what a set is, where sets come from, and how an image becomes a model's input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "qkv/base/rng.h"

namespace qkv {

/// N images of one size with their classes. Pixels are bytes, 0 is black.
struct ImageSet {
  int64_t channels = 1, height = 0, width = 0;
  std::vector<uint8_t> pixels = {};  // [N, channels, height, width]
  std::vector<int64_t> labels = {};  // [N]

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  int64_t image_size() const { return channels * height * width; }
  std::span<const uint8_t> operator[](int64_t i) const {
    return std::span(pixels).subspan(static_cast<size_t>(i * image_size()), static_cast<size_t>(image_size()));
  }
};

/// Images begin … end-1 of a set.
ImageSet slice(const ImageSet& set, int64_t begin, int64_t end);

struct ImageData {
  ImageSet train, test;
  std::vector<std::string> classes;  // names, by label
};

/// Where Debian's package dataset-fashion-mnist puts its files; "" when they are not there.
std::string installed_fashion_mnist();

/// A folder of IDX files (train-images-idx3-ubyte, …, each plain or .gz) or of PNG files, detected by content.
/// Throws IoError as the two readers do, or naming what was expected.
ImageData read_images(const std::string& folder);

/// The IDX layout of MNIST and Fashion-MNIST. Class names are the garments when the folder's name has "fashion" in it,
/// else the labels. Throws IoError naming the file: missing, wrong magic number, fewer or more bytes than its header
/// says, images and labels of different counts, test images of another size than the training ones.
ImageData read_idx_folder(const std::string& folder);
ImageSet read_idx(const std::string& images_path, const std::string& labels_path);

/// One folder per class: FOLDER/train/CLASS/*.png and FOLDER/test/CLASS/*.png, or FOLDER/CLASS/*.png of which about one
/// file in ten (by a hash of its name) is kept for the test. One channel when every file is grey, else three.
/// Throws IoError naming the file: not PNG, damaged, another size than the first one; or no images, a single class, or
/// a class of the test that the training lacks.
ImageData read_png_folder(const std::string& folder);

/// A decoded PNG: three channels; transparent parts are black.
struct Picture {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> pixels;  // [3, height, width]
};
/// Throws IoError "cannot read PATH: …": not PNG, damaged, larger than 8192 on a side.
Picture read_png(const std::string& path);
Picture decode_png(std::span<const std::byte> bytes, const std::string& name);
/// Plain pixels: binary PGM (grey) or PPM, one space or line end between the numbers before them. Throws as above.
Picture decode_pnm(std::span<const std::byte> bytes, const std::string& name);
/// A picture as an image of a set's shape: [channels, height, width], one channel being 0.299 R + 0.587 G + 0.114 B.
/// Throws IoError naming it when its size is another.
std::vector<uint8_t> fit_picture(const Picture& picture, const ImageSet& like, const std::string& name);

struct ShapesOptions {
  uint64_t seed = 1;
  int64_t train = 4000, test = 1000;
  int64_t side = 28;
};
/// Built-in images: circle, square, triangle, cross, ring, diamond, star and crescent, of random place, size, tilt and
/// brightness in noise; as many of each class as of any other, to within one.
ImageData generate_shapes(const ShapesOptions& options);

/// Mean and standard deviation of each channel over a set, of pixels scaled to [0, 1]. A deviation is at least 1/255.
struct ImageStatistics {
  std::vector<float> mean, deviation;  // [channels]
};
ImageStatistics image_statistics(const ImageSet& set);

struct Augmentation {
  int64_t shift = 0;         // up to this many pixels in each direction, black moving in
  bool flip = false;         // left to right, every other time
  double erase = 0;          // how often a rectangle is erased
  double erase_most = 0.33;  // largest share of the area that may go (the smallest is 0.02)
};

/// One image as a model reads it: (pixel / 255 − mean) / deviation, out [channels, height, width].
void prepare_image(const ImageSet& set, int64_t i, const ImageStatistics& statistics, std::span<float> out);
/// The same from an image shifted, flipped and erased at random; erased pixels are the mean, 0. What happens depends
/// on `rng` alone; use image_rng(seed, epoch, i).
void prepare_augmented(const ImageSet& set, int64_t i, const ImageStatistics& statistics,
                       const Augmentation& augmentation, Rng rng, std::span<float> out);
Rng image_rng(uint64_t seed, int64_t epoch, int64_t i);

/// CutMix (Yun et al. 2019) on prepared images of `like`'s shape, [n, channels, height, width]: the first and the last
/// swap what is in a rectangle, the second and the last but one, and so on. Returns the rectangle's share of the area,
/// which is that of the other image's class in each; it depends on `rng` alone.
double swap_rectangles(const ImageSet& like, Rng rng, std::span<float> images);

}  // namespace qkv
