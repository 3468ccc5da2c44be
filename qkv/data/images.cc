// Sets of images: choosing the reader, statistics, and the way from bytes to a model's input.
#include "qkv/data/images.h"

#include <algorithm>
#include <cmath>

#include "qkv/base/error.h"
#include "qkv/data/text_file.h"

namespace qkv {
namespace {

struct Rectangle {
  int64_t top = 0, left = 0, bottom = 0, right = 0;
  bool holds(int64_t y, int64_t x) const { return y >= top && y < bottom && x >= left && x < right; }
};

// A share of the area between 2% and `most`, its sides in a proportion between 0.3 and 1/0.3, anywhere inside.
Rectangle random_rectangle(const ImageSet& set, double most, Rng& rng) {
  const double area = static_cast<double>(set.height * set.width) * (0.02 + (most - 0.02) * rng.uniform());
  const double proportion = std::exp(std::log(0.3) * (1 - 2 * rng.uniform()));
  const auto side = [](double length, int64_t limit) {
    return std::clamp<int64_t>(static_cast<int64_t>(std::lround(length)), 1, limit);
  };
  const int64_t height = side(std::sqrt(area * proportion), set.height);
  const int64_t width = side(std::sqrt(area / proportion), set.width);
  const int64_t top = rng.below(set.height - height + 1), left = rng.below(set.width - width + 1);
  return {top, left, top + height, left + width};
}

}  // namespace

ImageSet slice(const ImageSet& set, int64_t begin, int64_t end) {
  if (begin < 0 || begin > end || end > set.size()) {
    throw ConfigError("images " + std::to_string(begin) + " to " + std::to_string(end) + " of a set of " +
                      std::to_string(set.size()));
  }
  ImageSet part{.channels = set.channels, .height = set.height, .width = set.width};
  part.labels.assign(set.labels.begin() + begin, set.labels.begin() + end);
  part.pixels.assign(set.pixels.begin() + begin * set.image_size(), set.pixels.begin() + end * set.image_size());
  return part;
}

ImageData read_images(const std::string& folder) {
  for (const char* name : {"/train-images-idx3-ubyte", "/t10k-images-idx3-ubyte"}) {
    if (!find_plain_or_gz(folder + name).empty()) return read_idx_folder(folder);
  }
  return read_png_folder(folder);
}

ImageStatistics image_statistics(const ImageSet& set) {
  ImageStatistics statistics;
  const auto plane = static_cast<size_t>(set.height * set.width);
  for (int64_t c = 0; c < set.channels; ++c) {
    uint64_t sum = 0, squares = 0;  // whole numbers: exact in any order
    for (int64_t i = 0; i < set.size(); ++i) {
      for (const uint8_t pixel : set[i].subspan(static_cast<size_t>(c) * plane, plane)) {
        sum += pixel;
        squares += uint64_t{pixel} * pixel;
      }
    }
    const double count = std::max<double>(1, static_cast<double>(plane) * static_cast<double>(set.size()));
    const double mean = static_cast<double>(sum) / count;
    const double variance = std::max(0.0, static_cast<double>(squares) / count - mean * mean);
    statistics.mean.push_back(static_cast<float>(mean / 255));
    statistics.deviation.push_back(static_cast<float>(std::max(1.0, std::sqrt(variance)) / 255));
  }
  return statistics;
}

void prepare_image(const ImageSet& set, int64_t i, const ImageStatistics& statistics, std::span<float> out) {
  prepare_augmented(set, i, statistics, {}, Rng(), out);
}

void prepare_augmented(const ImageSet& set, int64_t i, const ImageStatistics& statistics,
                       const Augmentation& augmentation, Rng rng, std::span<float> out) {
  const auto shift = [&] {
    return augmentation.shift > 0 ? rng.below(2 * augmentation.shift + 1) - augmentation.shift : 0;
  };
  const int64_t down = shift(), right = shift();
  const bool flip = augmentation.flip && rng.below(2) == 1;
  const bool erase = augmentation.erase > 0 && rng.uniform() < augmentation.erase;
  const Rectangle hole = erase ? random_rectangle(set, augmentation.erase_most, rng) : Rectangle{};
  const std::span<const uint8_t> image = set[i];
  size_t at = 0;
  for (int64_t c = 0; c < set.channels; ++c) {
    const float mean = statistics.mean[static_cast<size_t>(c)];
    const float scale = 1 / statistics.deviation[static_cast<size_t>(c)];
    for (int64_t y = 0; y < set.height; ++y) {
      for (int64_t x = 0; x < set.width; ++x, ++at) {
        const int64_t from_y = y - down, shifted = x - right;
        const int64_t from_x = flip ? set.width - 1 - shifted : shifted;
        const bool inside = from_y >= 0 && from_y < set.height && from_x >= 0 && from_x < set.width;
        const uint8_t pixel = inside ? image[static_cast<size_t>((c * set.height + from_y) * set.width + from_x)] : 0;
        out[at] = hole.holds(y, x) ? 0.0f : (static_cast<float>(pixel) / 255 - mean) * scale;
      }
    }
  }
}

double swap_rectangles(const ImageSet& like, Rng rng, std::span<float> images) {
  constexpr double kMost = 0.5;  // a larger share would be the same pair the other way round
  const Rectangle area = random_rectangle(like, kMost, rng);
  const int64_t size = like.image_size(), n = static_cast<int64_t>(images.size()) / size;
  for (int64_t first = 0, last = n - 1; first < last; ++first, --last) {
    for (int64_t row = 0; row < like.channels * like.height; ++row) {
      const int64_t y = row % like.height;
      if (y < area.top || y >= area.bottom) continue;
      const auto line = images.begin() + row * like.width;
      std::swap_ranges(line + first * size + area.left, line + first * size + area.right,
                       line + last * size + area.left);
    }
  }
  return static_cast<double>((area.bottom - area.top) * (area.right - area.left)) /
         static_cast<double>(like.height * like.width);
}

Rng image_rng(uint64_t seed, int64_t epoch, int64_t i) {
  return Rng(seed).fork(static_cast<uint64_t>(epoch)).fork(static_cast<uint64_t>(i));
}

}  // namespace qkv
