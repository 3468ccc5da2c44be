// PNG files, and folders of them with one folder per class.
#include <algorithm>
#include <filesystem>
#include <map>

#include "qkv/base/budget.h"
#include "qkv/base/error.h"
#include "qkv/data/images.h"
#include "qkv/io/file.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

using ClassFiles = std::map<std::string, std::vector<std::string>>;  // class → files, both sorted

bool is_png(const fs::path& path) {
  const std::string ending = path.extension().string();
  return ending == ".png" || ending == ".PNG";
}

ClassFiles find_classes(const std::string& folder) {
  ClassFiles classes;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (!entry.is_directory()) continue;
    std::vector<std::string> files;
    for (const auto& file : fs::directory_iterator(entry.path(), error)) {
      if (is_png(file.path())) files.push_back(file.path().string());
    }
    if (error) throw IoError("cannot read folder " + entry.path().string() + ": " + error.message());
    std::sort(files.begin(), files.end());
    if (!files.empty()) classes[entry.path().filename().string()] = std::move(files);
  }
  if (error) throw IoError("cannot read folder " + folder + ": " + error.message());
  return classes;
}

uint64_t name_hash(const std::string& path) {
  uint64_t hash = 0;
  for (const char c : fs::path(path).filename().string()) hash = mix64(hash ^ static_cast<uint8_t>(c));
  return hash;
}

// Reads the files of a list of classes into a set of three channels; the first file of all decides the size.
class SetReader {
 public:
  ImageSet read(const ClassFiles& files, const std::vector<std::string>& classes) {
    ImageSet set{.channels = 3, .height = 0, .width = 0};
    for (const auto& [name, paths] : files) {
      const auto label = std::find(classes.begin(), classes.end(), name);
      if (label == classes.end()) throw IoError("class " + name + " of the test set is not in the training set");
      for (const std::string& path : paths) {
        add(set, path);
        set.labels.push_back(label - classes.begin());
      }
    }
    set.height = height_;
    set.width = width_;
    return set;
  }

 private:
  void add(ImageSet& set, const std::string& path) {
    const Picture picture = read_png(path);
    if (first_.empty()) {
      first_ = path;
      height_ = picture.height;
      width_ = picture.width;
    }
    if (picture.height != height_ || picture.width != width_) {
      throw IoError("cannot use " + path + ": it is " + std::to_string(picture.height) + "x" +
                    std::to_string(picture.width) + ", but " + first_ + " is " + std::to_string(height_) + "x" +
                    std::to_string(width_) + "; all images must be of one size");
    }
    check_budget(2 * static_cast<int64_t>(set.pixels.size() + picture.pixels.size()));
    set.pixels.insert(set.pixels.end(), picture.pixels.begin(), picture.pixels.end());
  }

  std::string first_;
  int64_t height_ = 0, width_ = 0;
};

bool is_grey(const ImageSet& set) {
  const auto plane = static_cast<size_t>(set.height * set.width);
  for (int64_t i = 0; i < set.size(); ++i) {
    const std::span<const uint8_t> image = set[i];
    const auto red = image.first(plane);
    for (size_t c = 1; c < 3; ++c) {
      if (!std::equal(red.begin(), red.end(), image.subspan(c * plane, plane).begin())) return false;
    }
  }
  return true;
}

void keep_one_channel(ImageSet& set) {
  const auto plane = static_cast<size_t>(set.height * set.width);
  std::vector<uint8_t> grey;
  grey.reserve(plane * set.labels.size());
  for (int64_t i = 0; i < set.size(); ++i)
    grey.insert(grey.end(), set[i].begin(), set[i].begin() + static_cast<std::ptrdiff_t>(plane));
  set.pixels = std::move(grey);
  set.channels = 1;
}

}  // namespace

Picture read_png(const std::string& path) {
  constexpr uint64_t kLargestFile = uint64_t{1} << 30;
  return decode_png(read_file(path, kLargestFile), path);
}

std::vector<uint8_t> fit_picture(const Picture& picture, const ImageSet& like, const std::string& name) {
  if (picture.height != like.height || picture.width != like.width) {
    throw IoError("cannot use " + name + ": it is " + std::to_string(picture.height) + "x" +
                  std::to_string(picture.width) + ", the model reads " + std::to_string(like.height) + "x" +
                  std::to_string(like.width));
  }
  if (like.channels == 3) return picture.pixels;
  const auto plane = static_cast<size_t>(picture.height * picture.width);
  std::vector<uint8_t> grey(plane);
  for (size_t i = 0; i < plane; ++i) {
    const int red = picture.pixels[i], green = picture.pixels[plane + i], blue = picture.pixels[2 * plane + i];
    grey[i] = static_cast<uint8_t>((299 * red + 587 * green + 114 * blue + 500) / 1000);
  }
  return grey;
}

ImageData read_png_folder(const std::string& folder) {
  const bool split = fs::is_directory(fs::path(folder) / "train") && fs::is_directory(fs::path(folder) / "test");
  ClassFiles train = find_classes(split ? folder + "/train" : folder), test;
  if (split) {
    test = find_classes(folder + "/test");
  } else {
    for (auto& [name, paths] : train) {
      const auto kept = std::stable_partition(paths.begin(), paths.end(),
                                              [](const std::string& path) { return name_hash(path) % 10 != 0; });
      if (kept == paths.begin()) continue;  // never leave a class without training images
      if (kept != paths.end()) test[name].assign(kept, paths.end());
      paths.erase(kept, paths.end());
    }
  }
  if (train.size() < 2) {
    throw IoError("no images in " + folder +
                  ": expected IDX files as of MNIST, or at least two folders of PNG files, one for each class");
  }
  ImageData data;
  for (const auto& [name, paths] : train) data.classes.push_back(name);
  SetReader reader;
  data.train = reader.read(train, data.classes);
  data.test = reader.read(test, data.classes);
  if (is_grey(data.train) && is_grey(data.test)) {
    keep_one_channel(data.train);
    keep_one_channel(data.test);
  }
  return data;
}

}  // namespace qkv
