// IDX files, the format of MNIST and Fashion-MNIST.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "qkv/base/error.h"
#include "qkv/data/images.h"
#include "qkv/data/text_file.h"

namespace qkv {
namespace {

constexpr uint32_t kImagesMagic = 0x00000803, kLabelsMagic = 0x00000801;
constexpr const char* kFashionFolder = "/usr/share/datasets/fashion-mnist";
constexpr const char* kGarments[] = {"T-shirt", "trouser", "pullover", "dress", "coat",
                                     "sandal",  "shirt",   "sneaker",  "bag",   "ankle boot"};

std::string hex(uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08X", value);
  return text;
}

uint32_t word_at(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = (value << 8) | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

struct Idx {
  std::vector<int64_t> shape;
  std::string bytes;  // header included
  size_t header = 0;
};

Idx read_idx_file(const std::string& path, uint32_t magic) {
  const auto fail = [&](const std::string& reason) { throw IoError("cannot read " + path + ": " + reason); };
  Idx idx{.shape = {}, .bytes = read_plain_or_gz(path), .header = 4 + 4 * (magic & 0xFF)};
  if (idx.bytes.size() < 4) fail("truncated: it has no IDX header");
  const char* what = magic == kImagesMagic ? "images" : "labels";
  if (word_at(idx.bytes, 0) != magic) {
    fail("wrong magic number " + hex(word_at(idx.bytes, 0)) + ": expected " + hex(magic) + ", IDX " + what);
  }
  if (idx.bytes.size() < idx.header) fail("truncated: its IDX header is cut off");
  uint64_t expected = 1;
  for (size_t at = 4; at < idx.header; at += 4) {
    const uint32_t dim = word_at(idx.bytes, at);
    idx.shape.push_back(dim);
    if (dim == 0) fail("it has no " + std::string(what));
    if (expected > kMaxUnpackedBytes / dim) fail("its IDX header names an impossible size");
    expected *= dim;
  }
  const uint64_t actual = idx.bytes.size() - idx.header;
  if (actual != expected) {
    fail(std::string(actual < expected ? "truncated" : "too long") + ": its header promises " +
         std::to_string(expected) + " bytes, " + std::to_string(actual) + " follow");
  }
  return idx;
}

std::string needed(const std::string& folder, const std::string& name) {
  const std::string stem = (std::filesystem::path(folder) / name).string();
  const std::string path = find_plain_or_gz(stem);
  if (path.empty()) throw IoError("missing file " + stem + " (or " + stem + ".gz)");
  return path;
}

}  // namespace

std::string installed_fashion_mnist() {
  return find_plain_or_gz(std::string(kFashionFolder) + "/train-images-idx3-ubyte").empty() ? "" : kFashionFolder;
}

ImageSet read_idx(const std::string& images_path, const std::string& labels_path) {
  const Idx images = read_idx_file(images_path, kImagesMagic), labels = read_idx_file(labels_path, kLabelsMagic);
  if (images.shape[0] != labels.shape[0]) {
    throw IoError("images and labels differ in number: " + images_path + " has " + std::to_string(images.shape[0]) +
                  " images, " + labels_path + " has " + std::to_string(labels.shape[0]) + " labels");
  }
  ImageSet set{.channels = 1, .height = images.shape[1], .width = images.shape[2]};
  set.pixels.assign(images.bytes.begin() + static_cast<std::ptrdiff_t>(images.header), images.bytes.end());
  for (size_t i = labels.header; i < labels.bytes.size(); ++i)
    set.labels.push_back(static_cast<uint8_t>(labels.bytes[i]));
  return set;
}

ImageData read_idx_folder(const std::string& folder) {
  const std::string test_path = needed(folder, "t10k-images-idx3-ubyte");
  ImageData data;
  data.train = read_idx(needed(folder, "train-images-idx3-ubyte"), needed(folder, "train-labels-idx1-ubyte"));
  data.test = read_idx(test_path, needed(folder, "t10k-labels-idx1-ubyte"));
  if (data.test.height != data.train.height || data.test.width != data.train.width) {
    throw IoError("cannot use " + test_path + ": its images are " + std::to_string(data.test.height) + "x" +
                  std::to_string(data.test.width) + ", the training images " + std::to_string(data.train.height) + "x" +
                  std::to_string(data.train.width));
  }
  const int64_t highest = std::max(*std::max_element(data.train.labels.begin(), data.train.labels.end()),
                                   *std::max_element(data.test.labels.begin(), data.test.labels.end()));
  const bool garments = folder.find("fashion") != std::string::npos && highest < 10;
  for (int64_t label = 0; label <= highest; ++label) {
    data.classes.push_back(garments ? kGarments[label] : std::to_string(label));
  }
  return data;
}

}  // namespace qkv
