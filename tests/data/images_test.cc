// Images: IDX and PNG readers with their errors, the built-in shapes, statistics and augmentation.
#include "qkv/data/images.h"

#include <cairo.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "qkv/io/file.h"

namespace qkv {
namespace {

using testing::message_of;
using testing::TempFolder;

std::string word(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

std::string idx_images(uint32_t n, uint32_t height, uint32_t width) {
  std::string bytes = word(0x803) + word(n) + word(height) + word(width);
  for (uint32_t i = 0; i < n * height * width; ++i) bytes.push_back(static_cast<char>(i * 7));
  return bytes;
}

std::string idx_labels(const std::string& labels) {
  return word(0x801) + word(static_cast<uint32_t>(labels.size())) + labels;
}

class IdxFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    put("train-images-idx3-ubyte", idx_images(3, 2, 4));
    put("train-labels-idx1-ubyte", idx_labels({0, 2, 1}));
    put("t10k-images-idx3-ubyte", idx_images(2, 2, 4));
    put("t10k-labels-idx1-ubyte", idx_labels({1, 1}));
  }
  void put(const std::string& name, const std::string& bytes) { write_file_atomic(folder_ / name, bytes); }
  std::string error() {
    return message_of<IoError>([&] { read_images(folder_.path()); });
  }
  std::string cannot(const std::string& name) { return "cannot read " + (folder_ / name) + ": "; }
  TempFolder folder_;
};

TEST_F(IdxFolder, Reads) {
  const ImageData data = read_images(folder_.path());
  EXPECT_EQ(data.train.size(), 3);
  EXPECT_EQ(data.train.height, 2);
  EXPECT_EQ(data.train.width, 4);
  EXPECT_EQ(data.train.labels, (std::vector<int64_t>{0, 2, 1}));
  EXPECT_EQ(data.train[1][0], 56);
  EXPECT_EQ(data.test.size(), 2);
  EXPECT_EQ(data.classes, (std::vector<std::string>{"0", "1", "2"}));
  const ImageSet part = slice(data.train, 1, 3);
  EXPECT_EQ(part.size(), 2);
  EXPECT_EQ(part[0][0], 56);
  EXPECT_NE(message_of<ConfigError>([&] { slice(data.train, 2, 4); }), "");
}

TEST_F(IdxFolder, ErrorsNameTheFile) {
  put("train-labels-idx1-ubyte", idx_images(1, 1, 1));
  EXPECT_EQ(error(),
            cannot("train-labels-idx1-ubyte") + "wrong magic number 0x00000803: expected 0x00000801, IDX labels");
  put("train-labels-idx1-ubyte", idx_labels({0, 2}));
  EXPECT_EQ(error(), "images and labels differ in number: " + (folder_ / "train-images-idx3-ubyte") +
                         " has 3 images, " + (folder_ / "train-labels-idx1-ubyte") + " has 2 labels");
  SetUp();
  put("t10k-images-idx3-ubyte", idx_images(2, 4, 2));
  EXPECT_EQ(error(),
            "cannot use " + (folder_ / "t10k-images-idx3-ubyte") + ": its images are 4x2, the training images 2x4");
  const std::string name = "train-images-idx3-ubyte", good = idx_images(3, 2, 4);
  for (const auto& [bytes, reason] : std::vector<std::pair<std::string, std::string>>{
           {good.substr(0, 39), "truncated: its header promises 24 bytes, 23 follow"},
           {good + "x", "too long: its header promises 24 bytes, 25 follow"},
           {good.substr(0, 10), "truncated: its IDX header is cut off"},
           {"ab", "truncated: it has no IDX header"},
           {idx_images(0, 2, 4), "it has no images"},
           {word(0x803) + word(~0u) + word(~0u) + word(~0u), "its IDX header names an impossible size"}}) {
    put(name, bytes);
    EXPECT_EQ(error(), cannot(name) + reason);
  }
  std::filesystem::remove(folder_ / name);
  EXPECT_EQ(error(), "missing file " + (folder_ / name) + " (or " + (folder_ / name) + ".gz)");
}

// A PNG of one colour (0xAARRGGBB, premultiplied) but for its top left pixel, which is black.
std::string png(int width, int height, uint32_t colour) {
  cairo_surface_t* surface = cairo_image_surface_create(CAIRO_FORMAT_ARGB32, width, height);
  cairo_surface_flush(surface);
  unsigned char* data = cairo_image_surface_get_data(surface);
  const int stride = cairo_image_surface_get_stride(surface);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const uint32_t pixel = x + y == 0 ? 0xFF000000u : colour;
      std::memcpy(data + y * stride + 4 * x, &pixel, 4);
    }
  }
  cairo_surface_mark_dirty(surface);
  std::string bytes;
  cairo_surface_write_to_png_stream(
      surface,
      [](void* out, const unsigned char* more, unsigned int n) {
        static_cast<std::string*>(out)->append(reinterpret_cast<const char*>(more), n);
        return CAIRO_STATUS_SUCCESS;
      },
      &bytes);
  cairo_surface_destroy(surface);
  return bytes;
}

TEST(Png, DecodesToPlanes) {
  const Picture picture = decode_png(bytes_of(png(3, 2, 0xFF102030)), "p");
  EXPECT_EQ(picture.width, 3);
  EXPECT_EQ(picture.height, 2);
  EXPECT_EQ(picture.pixels,
            (std::vector<uint8_t>{0, 16, 16, 16, 16, 16, 0, 32, 32, 32, 32, 32, 0, 48, 48, 48, 48, 48}));
  const Picture see_through = decode_png(bytes_of(png(2, 1, 0x80400000)), "p");  // half transparent: half as bright
  EXPECT_NEAR(see_through.pixels[1], 64, 1);
  const ImageSet grey{.channels = 1, .height = 2, .width = 3};
  EXPECT_EQ(fit_picture(picture, grey, "p")[1], (299 * 16 + 587 * 32 + 114 * 48 + 500) / 1000);
  const ImageSet other{.channels = 1, .height = 28, .width = 28};
  EXPECT_EQ(message_of<IoError>([&] { fit_picture(picture, other, "p.png"); }),
            "cannot use p.png: it is 2x3, the model reads 28x28");
}

TEST(Png, BadFilesAreNamed) {
  const std::string good = png(9, 9, 0xFFFFFFFF);
  const auto error = [](const std::string& bytes) {
    return message_of<IoError>([&] { decode_png(bytes_of(bytes), "p.png"); });
  };
  EXPECT_EQ(error(""), "cannot read p.png: it is not a PNG file");
  EXPECT_EQ(error("GIF89a" + std::string(100, 'x')), "cannot read p.png: it is not a PNG file");
  for (const size_t cut : {size_t{30}, good.size() / 2, good.size() - 13}) {
    EXPECT_EQ(error(good.substr(0, cut)), "cannot read p.png: the PNG data is damaged or truncated") << cut;
  }
  std::string damaged = good;
  damaged[good.size() / 2] ^= 0x55;
  EXPECT_EQ(error(damaged), "cannot read p.png: the PNG data is damaged or truncated");
  std::string huge = good;
  huge[16] = 0x7F;
  EXPECT_EQ(error(huge), "cannot read p.png: its sides must be between 1 and 8192 pixels");
  std::string large = good;
  large[18] = large[22] = 0x1F;
  EXPECT_EQ(error(large), "cannot read p.png: it has more than 16,777,216 pixels");
  // Bytes 16 to 23 say 4096x4096; the picture, from the IHDR after them, is 9x9.
  const std::string before(
      "\0\0\0\x08"
      "teXt"
      "\0\0\x10\0\0\0\x10\0"
      "\0\0\0\0",
      20);
  EXPECT_EQ(error(good.substr(0, 8) + before + good.substr(8)),
            "cannot read p.png: the PNG data is damaged or truncated");
}

// A megabyte of texts that a decoder would unpack to a gigabyte.
TEST(Png, WhatIsNoPictureIsNotUnpacked) {
  const std::string good = png(9, 9, 0xFF102030);
  std::string text(size_t{1} << 23, ' ');
  uLongf packed = compressBound(text.size());
  std::string data(packed, '\0');
  compress(reinterpret_cast<Bytef*>(data.data()), &packed, reinterpret_cast<const Bytef*>(text.data()), text.size());
  const std::string body = std::string("zTXt", 4) + std::string("k\0\0", 3) + data.substr(0, packed);
  const auto word = [](uLong v) {
    return std::string{static_cast<char>(v >> 24), static_cast<char>(v >> 16), static_cast<char>(v >> 8),
                       static_cast<char>(v)};
  };
  const std::string chunk = word(body.size() - 4) + body +
                            word(crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size())));
  std::string bomb = good.substr(0, 33);
  for (int i = 0; i < 120; ++i) bomb += chunk;
  bomb += good.substr(33);
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  EXPECT_EQ(decode_png(bytes_of(bomb), "p.png").pixels, decode_png(bytes_of(good), "p.png").pixels);
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 256 << 10) << "kibibytes";
}

class PngFolder : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& bytes) {
    make_folders(std::filesystem::path(folder_ / path).parent_path().string());
    std::ofstream(folder_ / path, std::ios::binary) << bytes;
  }
  std::string error() {
    return message_of<IoError>([&] { read_images(folder_.path()); });
  }
  TempFolder folder_;
};

TEST_F(PngFolder, TrainAndTestFolders) {
  put("train/cat/a.png", png(4, 4, 0xFF808080));
  put("train/dog/a.png", png(4, 4, 0xFF202020));
  put("train/dog/notes.txt", "no image");
  put("test/dog/b.png", png(4, 4, 0xFF303030));
  const ImageData data = read_images(folder_.path());
  EXPECT_EQ(data.classes, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(data.train.channels, 1);
  EXPECT_EQ(data.train.labels, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(data.train[0][5], 0x80);
  EXPECT_EQ(data.test.labels, std::vector<int64_t>{1});
  put("test/dog/c.png", png(4, 4, 0xFF303031));  // one coloured pixel makes three channels
  EXPECT_EQ(read_images(folder_.path()).train.channels, 3);
  put("test/bird/c.png", png(4, 4, 0xFF303030));
  EXPECT_EQ(error(), "class bird of the test set is not in the training set");
}

TEST_F(PngFolder, OneFolderIsSplitByName) {
  for (int i = 0; i < 100; ++i) {
    for (const char* name : {"x", "y"}) put(name + ("/" + std::to_string(i) + ".png"), png(2, 2, 0xFFFFFFFF));
  }
  const ImageData data = read_images(folder_.path());
  EXPECT_EQ(data.train.size() + data.test.size(), 200);
  EXPECT_NEAR(static_cast<double>(data.test.size()), 20, 14);
  EXPECT_EQ(read_images(folder_.path()).test.labels, data.test.labels);
}

TEST_F(PngFolder, Errors) {
  EXPECT_EQ(error(), "no images in " + folder_.path() +
                         ": expected IDX files as of MNIST, or at least two folders of PNG files, one for each class");
  put("a/1.png", png(4, 4, 0xFF808080));
  put("b/1.png", png(4, 5, 0xFF808080));
  EXPECT_EQ(error(), "cannot use " + (folder_ / "b/1.png") + ": it is 5x4, but " + (folder_ / "a/1.png") +
                         " is 4x4; all images must be of one size");
  put("b/1.png", "nonsense");
  EXPECT_EQ(error(), "cannot read " + (folder_ / "b/1.png") + ": it is not a PNG file");
  EXPECT_NE(message_of<IoError>([] { read_images("/nowhere"); }).find("cannot read folder /nowhere"),
            std::string::npos);
}

TEST(Shapes, BalancedDeterministicAndDifferent) {
  const ShapesOptions options{.seed = 3, .train = 80, .test = 16, .side = 24};
  const ImageData data = generate_shapes(options), again = generate_shapes(options);
  EXPECT_EQ(data.train.pixels, again.train.pixels);
  EXPECT_NE(data.train.pixels, generate_shapes({.seed = 4, .train = 80, .test = 16, .side = 24}).train.pixels);
  EXPECT_EQ(data.classes.size(), 8u);
  for (int64_t label = 0; label < 8; ++label) {
    EXPECT_EQ(std::count(data.train.labels.begin(), data.train.labels.end(), label), 10);
    EXPECT_EQ(std::count(data.test.labels.begin(), data.test.labels.end(), label), 2);
  }
  EXPECT_EQ(data.train.image_size(), 24 * 24);
  // Every image has its shape in it: some pixels far brighter than the others.
  for (int64_t i = 0; i < data.train.size(); ++i) {
    std::vector<uint8_t> sorted(data.train[i].begin(), data.train[i].end());
    std::sort(sorted.begin(), sorted.end());
    EXPECT_GT(sorted[sorted.size() * 97 / 100] - sorted[sorted.size() / 4], 50)
        << data.classes[static_cast<size_t>(data.train.labels[static_cast<size_t>(i)])];
  }
}

ImageSet ramp() {
  ImageSet set{.channels = 2, .height = 2, .width = 3, .pixels = {}, .labels = {0}};
  for (uint8_t i = 0; i < 12; ++i) set.pixels.push_back(static_cast<uint8_t>(10 * (i + 1)));
  return set;
}

TEST(Preparation, StatisticsAreOfEachChannel) {
  const ImageStatistics s = image_statistics(ramp());
  EXPECT_FLOAT_EQ(s.mean[0], 35.0f / 255);
  EXPECT_FLOAT_EQ(s.mean[1], 95.0f / 255);
  EXPECT_NEAR(s.deviation[0], std::sqrt(2.5 * 2.5 + 1.5 * 1.5 + 0.5 * 0.5) / std::sqrt(3) * 10 / 255, 1e-6);
  ImageSet flat = ramp();
  std::fill(flat.pixels.begin(), flat.pixels.end(), uint8_t{7});
  EXPECT_FLOAT_EQ(image_statistics(flat).deviation[0], 1.0f / 255);  // never a division by zero
  std::vector<float> out(12);
  prepare_image(ramp(), 0, s, out);
  double sum = 0, squares = 0;
  for (size_t i = 0; i < 6; ++i) {
    sum += out[i];
    squares += static_cast<double>(out[i]) * out[i];
  }
  EXPECT_NEAR(sum, 0, 1e-5);
  EXPECT_NEAR(squares / 6, 1, 1e-5);
}

TEST(Preparation, ShiftAndFlipMoveWholeImages) {
  const ImageSet set = ramp();
  const ImageStatistics identity{.mean = {0, 0}, .deviation = {1.0f / 255, 1.0f / 255}};  // out = pixel
  std::vector<float> plain(12), out(12);
  prepare_image(set, 0, identity, plain);
  int flipped = 0, shifted = 0;
  for (int64_t k = 0; k < 200; ++k) {
    prepare_augmented(set, 0, identity, {.shift = 0, .flip = true}, image_rng(1, 0, k), out);
    if (out != plain) {
      ++flipped;
      for (size_t i = 0; i < 12; ++i) EXPECT_NEAR(out[i], plain[i / 3 * 3 + 2 - i % 3], 1e-4);
    }
    prepare_augmented(set, 0, identity, {.shift = 1}, image_rng(1, 1, k), out);
    bool found = false;
    for (int64_t dy = -1; dy <= 1; ++dy) {
      for (int64_t dx = -1; dx <= 1; ++dx) {
        bool same = true;
        for (int64_t i = 0; i < 12; ++i) {
          const int64_t y = i / 3 % 2 - dy, x = i % 3 - dx;
          const bool inside = y >= 0 && y < 2 && x >= 0 && x < 3;
          const float want = inside ? plain[static_cast<size_t>(i / 6 * 6 + y * 3 + x)] : 0;
          same &= std::abs(out[static_cast<size_t>(i)] - want) < 1e-4;
        }
        found |= same;
      }
    }
    EXPECT_TRUE(found);
    shifted += out != plain ? 1 : 0;
  }
  EXPECT_NEAR(flipped, 100, 36);
  EXPECT_NEAR(shifted, 200 * 8 / 9, 25);
}

TEST(Preparation, ErasingLeavesOneRectangleOfTheMean) {
  ImageSet set{.channels = 1, .height = 20, .width = 20, .pixels = std::vector<uint8_t>(400, 200), .labels = {0}};
  const ImageStatistics statistics{.mean = {0.5f}, .deviation = {0.25f}};
  std::vector<float> out(400);
  int erased = 0;
  for (int64_t k = 0; k < 200; ++k) {
    prepare_augmented(set, 0, statistics, {.erase = 0.5}, image_rng(7, 0, k), out);
    int64_t top = 20, left = 20, bottom = -1, right = -1, zeros = 0;
    for (int64_t i = 0; i < 400; ++i) {
      if (out[static_cast<size_t>(i)] != 0) continue;
      ++zeros;
      top = std::min(top, i / 20), bottom = std::max(bottom, i / 20);
      left = std::min(left, i % 20), right = std::max(right, i % 20);
    }
    if (zeros == 0) continue;
    ++erased;
    EXPECT_EQ(zeros, (bottom - top + 1) * (right - left + 1));
    EXPECT_LE(zeros, 400 * 0.40);
  }
  EXPECT_NEAR(erased, 100, 36);
  std::vector<float> again(400);
  prepare_augmented(set, 0, statistics, {.erase = 0.5}, image_rng(7, 0, 199), again);
  EXPECT_EQ(out, again);
}

TEST(Preparation, PairsSwapOneRectangleAndItsShareIsTold) {
  // Image n is all n; five of them: the middle one has no partner but itself.
  const ImageSet like{.channels = 2, .height = 10, .width = 8};
  std::vector<float> plain(5 * 160);
  for (size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<float>(i / 160);
  double smallest = 1, largest = 0;
  for (int64_t k = 0; k < 100; ++k) {
    std::vector<float> images = plain;
    const double share = swap_rectangles(like, image_rng(3, 0, k), images);
    smallest = std::min(smallest, share), largest = std::max(largest, share);
    for (int64_t n = 0; n < 5; ++n) {
      int64_t top = 10, left = 8, bottom = -1, right = -1, swapped = 0;
      for (int64_t i = 0; i < 160; ++i) {
        const float value = images[static_cast<size_t>(n * 160 + i)];
        if (n != 2 && value == static_cast<float>(4 - n)) {
          ++swapped;
          top = std::min(top, i / 8 % 10), bottom = std::max(bottom, i / 8 % 10);
          left = std::min(left, i % 8), right = std::max(right, i % 8);
        } else {
          EXPECT_EQ(value, static_cast<float>(n));
        }
      }
      if (n == 2) continue;
      EXPECT_EQ(swapped, 2 * (bottom - top + 1) * (right - left + 1));
      EXPECT_DOUBLE_EQ(share, static_cast<double>(swapped) / 160);
    }
  }
  EXPECT_LT(smallest, 0.1);
  EXPECT_GT(largest, 0.4);
  EXPECT_LE(largest, 0.6);
}

}  // namespace
}  // namespace qkv
