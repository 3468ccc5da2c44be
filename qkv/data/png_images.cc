// PNG files, and folders of them with one folder a class.
#include <cairo.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <new>

#include "qkv/base/error.h"
#include "qkv/data/images.h"
#include "qkv/io/file.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLargestSide = 8192, kMostPixels = int64_t{1} << 24;
constexpr unsigned char kSignature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

cairo_status_t give_bytes(void* closure, unsigned char* out, unsigned int length) {
  auto& left = *static_cast<std::span<const std::byte>*>(closure);
  if (left.size() < length) return CAIRO_STATUS_READ_ERROR;
  std::memcpy(out, left.data(), length);
  left = left.subspan(length);
  return CAIRO_STATUS_SUCCESS;
}

int64_t big_endian(std::span<const std::byte> bytes) {
  int64_t value = 0;
  for (const std::byte b : bytes.first(4)) value = (value << 8) | std::to_integer<int64_t>(b);
  return value;
}

// The chunks that make the picture. The others stay out of the decoder: texts and colour profiles unpack to megabytes
// each. A chunk is its length, its name, its data and a check sum; a cut one ends the file here.
Bytes picture_chunks(std::span<const std::byte> bytes) {
  Bytes kept(bytes.begin(), bytes.begin() + sizeof kSignature);
  for (auto left = bytes.subspan(sizeof kSignature); left.size() >= 12;) {
    const int64_t size = 12 + big_endian(left);
    if (size > static_cast<int64_t>(left.size())) break;
    const std::string_view name(reinterpret_cast<const char*>(left.data()) + 4, 4);
    const auto chunk = left.first(static_cast<size_t>(size));
    left = left.subspan(chunk.size());
    for (const char* known : {"IHDR", "PLTE", "tRNS", "IDAT", "IEND"}) {
      if (name == known) kept.insert(kept.end(), chunk.begin(), chunk.end());
    }
    if (name == "IEND") break;
  }
  return kept;
}

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

Picture decode_png(std::span<const std::byte> bytes, const std::string& name) {
  const auto fail = [&](const char* reason) { throw IoError("cannot read " + name + ": " + reason); };
  if (bytes.size() < 24 || std::memcmp(bytes.data(), kSignature, sizeof kSignature) != 0) fail("it is not a PNG file");
  // The size that the first chunk names is checked, so that nothing huge is ever decoded; what counts is what comes
  // out.
  if (std::memcmp(bytes.data() + 12, "IHDR", 4) != 0) fail("it does not begin with the chunk IHDR, as a PNG file does");
  const int64_t named_width = big_endian(bytes.subspan(16)), named_height = big_endian(bytes.subspan(20));
  if (named_width < 1 || named_height < 1 || named_width > kLargestSide || named_height > kLargestSide) {
    fail("its sides must be between 1 and 8192 pixels");
  }
  if (named_width * named_height > kMostPixels) fail("it has more than 16,777,216 pixels");
  const Bytes chunks = picture_chunks(bytes);
  std::span<const std::byte> left(chunks);
  const std::unique_ptr<cairo_surface_t, void (*)(cairo_surface_t*)> surface(
      cairo_image_surface_create_from_png_stream(give_bytes, &left), cairo_surface_destroy);
  if (cairo_surface_status(surface.get()) == CAIRO_STATUS_NO_MEMORY) throw std::bad_alloc();
  if (cairo_surface_status(surface.get()) != CAIRO_STATUS_SUCCESS) fail("the PNG data is damaged or truncated");
  const int64_t width = cairo_image_surface_get_width(surface.get());
  const int64_t height = cairo_image_surface_get_height(surface.get());
  const cairo_format_t format = cairo_image_surface_get_format(surface.get());
  if (format != CAIRO_FORMAT_ARGB32 && format != CAIRO_FORMAT_RGB24)
    fail("its pixels are deeper than 8 bits a channel");

  Picture picture{
      .height = height, .width = width, .pixels = std::vector<uint8_t>(static_cast<size_t>(3 * height * width))};
  const unsigned char* rows = cairo_image_surface_get_data(surface.get());
  const int stride = cairo_image_surface_get_stride(surface.get());
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      uint32_t pixel = 0;  // premultiplied 0xAARRGGBB, so black shows through where it is transparent
      std::memcpy(&pixel, rows + y * stride + 4 * x, 4);
      for (int64_t c = 0; c < 3; ++c) {
        picture.pixels[static_cast<size_t>((c * height + y) * width + x)] = static_cast<uint8_t>(pixel >> (16 - 8 * c));
      }
    }
  }
  return picture;
}

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
    throw IoError("no images in " + folder + ": expected at least two folders of PNG files, one folder a class");
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
