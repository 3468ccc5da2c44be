// Loading, splitting and describing the images of a run.
#include "qkv/tasks/images/data.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "qkv/base/base64.h"
#include "qkv/base/error.h"
#include "qkv/data/batching.h"
#include "qkv/io/file.h"
#include "qkv/io/json.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr const char* kShapesSource = "shapes";
constexpr const char* kAsset = "/images.json";
constexpr int64_t kShapesTrain = 4000, kShapesTest = 1000;
constexpr uint64_t kSplitStream = 0x5b1d;  // of the fixed choice of validation images
constexpr uint64_t kLargestAsset = uint64_t{1} << 24;
constexpr int64_t kLargestSide = 8192;

std::string source_of(const std::string& data) {
  if (data == kShapesSource) return data;
  if (!data.empty()) return fs::absolute(data).lexically_normal().string();
  const std::string installed = installed_fashion_mnist();
  return installed.empty() ? kShapesSource : installed;
}

Json to_json(const ImageFormat& f) {
  return {{"source", f.source},
          {"channels", f.channels},
          {"height", f.height},
          {"width", f.width},
          {"classes", f.classes},
          {"mean", f.statistics.mean},
          {"deviation", f.statistics.deviation}};
}

ImageFormat read_format(const std::string& path) {
  const Json file = read_json(path, "the format of a run's images", kLargestAsset);
  const JsonObject j(file, path);
  ImageFormat f{j.text("source"),
                j.integer("channels", 1, 3),
                j.integer("height", 1, kLargestSide),
                j.integer("width", 1, kLargestSide),
                j.texts("classes"),
                {}};
  // Both are shares of a pixel's 255.
  for (const double mean : j.numbers("mean", 0, 1)) f.statistics.mean.push_back(static_cast<float>(mean));
  for (const double d : j.numbers("deviation", 1e-6, 1)) f.statistics.deviation.push_back(static_cast<float>(d));
  const auto channels = static_cast<size_t>(f.channels);
  if (f.classes.size() < 2 || f.statistics.mean.size() != channels || f.statistics.deviation.size() != channels) {
    throw IoError("cannot read " + path + ": its sizes do not fit together");
  }
  return f;
}

ImageSet chosen(const ImageSet& set, std::span<const int64_t> indices) {
  ImageSet part{.channels = set.channels, .height = set.height, .width = set.width};
  part.pixels.reserve(indices.size() * static_cast<size_t>(set.image_size()));
  for (const int64_t i : indices) {
    part.labels.push_back(set.labels[static_cast<size_t>(i)]);
    part.pixels.insert(part.pixels.end(), set[i].begin(), set[i].end());
  }
  return part;
}

std::string size_text(int64_t height, int64_t width) { return std::to_string(height) + "x" + std::to_string(width); }

// Grey becomes three equal channels, colour becomes grey as fit_picture() makes it.
ImageSet with_channels(const ImageSet& set, const ImageFormat& format, const std::string& name) {
  if (set.channels == format.channels) return set;
  ImageSet fitted{.channels = format.channels, .height = set.height, .width = set.width};
  fitted.labels = set.labels;
  for (int64_t i = 0; i < set.size(); ++i) {
    if (set.channels == 1) {
      for (int64_t c = 0; c < format.channels; ++c)
        fitted.pixels.insert(fitted.pixels.end(), set[i].begin(), set[i].end());
    } else {
      const Picture picture{set.height, set.width, {set[i].begin(), set[i].end()}};
      const std::vector<uint8_t> grey = fit_picture(picture, fitted, name);
      fitted.pixels.insert(fitted.pixels.end(), grey.begin(), grey.end());
    }
  }
  return fitted;
}

// "17" of "val:17"; nothing when the input is not of that set.
std::optional<int64_t> number_of(const std::string& input, std::string_view set, int64_t size) {
  if (!input.starts_with(set)) return std::nullopt;
  int64_t n = -1;
  const char* end = input.data() + input.size();
  const auto [stop, error] = std::from_chars(input.data() + set.size(), end, n);
  if (error != std::errc() || stop != end || n < 0 || n >= size) {
    throw ConfigError("no image " + input + ": they are numbered " + std::string(set) + "0 to " + std::string(set) +
                      std::to_string(size - 1));
  }
  return n;
}

}  // namespace

void declare_image_data(Settings& s) {
  s.group("data")
      .path("data", "",
            "folder of IDX files or of PNG files, one folder per class; shapes: generated; empty: Fashion-MNIST where "
            "Debian installs it, else shapes")
      .integer("train-size", 0, "training and validation images together; 0: all there are (4,000 shapes)", 0, 1e9)
      .integer("validation-size", 5000, "of these, images kept for validation; at most a fifth", 1, 1e9)
      .open_to_clients({"train-size", "validation-size"});
}

ImageTaskData::ImageTaskData(const Settings& s, const std::string& assets)
    : seed_(static_cast<uint64_t>(s.get_integer("seed"))),
      train_size_(s.get_integer("train-size")),
      validation_size_(s.get_integer("validation-size")) {
  if (!assets.empty()) {
    format_ = read_format(assets + kAsset);
    const std::string& data = s.get_text("data");
    source_ = data.starts_with('/') && format_.source != kShapesSource ? data : format_.source;
    return;
  }
  source_ = source_of(s.get_text("data"));
  load();
}

void ImageTaskData::load() {
  if (loaded_) return;
  ImageData data;
  if (source_ == kShapesSource) {
    const int64_t n = train_size_ > 0 ? train_size_ : kShapesTrain;
    data = generate_shapes({.seed = seed_, .train = n, .test = kShapesTest});
  } else {
    data = read_images(source_);
  }
  const ImageSet& all = data.train;
  if (!format_.classes.empty() && (data.classes != format_.classes || all.height != format_.height ||
                                   all.width != format_.width || all.channels != format_.channels)) {
    throw IoError("the images in " + source_ +
                  " are not those this run was trained on: " + size_text(all.height, all.width) + " in " +
                  std::to_string(data.classes.size()) + " classes, the run's are " +
                  size_text(format_.height, format_.width) + " in " + std::to_string(format_.classes.size()));
  }
  test_ = std::move(data.test);
  split(data.train, train_size_);
  loaded_ = true;
  if (format_.classes.empty()) {
    format_ = {source_, train_.channels, train_.height, train_.width, data.classes, image_statistics(train_)};
  }
}

void ImageTaskData::split(const ImageSet& all, int64_t kept) {
  std::vector<int64_t> order = shuffled_indices(all.size(), 0, kSplitStream);
  if (kept > 0 && kept < all.size()) order.resize(static_cast<size_t>(kept));
  const auto n = static_cast<int64_t>(order.size());
  const int64_t held = std::min(validation_size_, n / 5);
  if (held < 1) {
    throw ConfigError("only " + std::to_string(n) + " training images from " + source_ + "; at least 5 are needed");
  }
  const std::span<const int64_t> indices(order);
  validation_ = chosen(all, indices.first(static_cast<size_t>(held)));
  train_ = chosen(all, indices.subspan(static_cast<size_t>(held)));
}

const ImageSet& ImageTaskData::train() {
  load();
  return train_;
}

const ImageSet& ImageTaskData::validation() {
  load();
  return validation_;
}

const ImageSet& ImageTaskData::test() {
  load();
  return test_;
}

ImageSet ImageTaskData::read_other(const std::string& folder) const {
  ImageData data = read_images(folder);
  ImageSet set = std::move(data.test);
  const bool split = fs::is_directory(fs::path(folder) / "train");
  const bool idx = !split && !fs::is_directory(fs::path(folder) / data.classes[0]);
  if (!split && !idx) {
    set.pixels.insert(set.pixels.end(), data.train.pixels.begin(), data.train.pixels.end());
    set.labels.insert(set.labels.end(), data.train.labels.begin(), data.train.labels.end());
  }
  if (set.height != format_.height || set.width != format_.width) {
    throw IoError("cannot use the images in " + folder + ": they are " + size_text(set.height, set.width) +
                  ", the model reads " + size_text(format_.height, format_.width));
  }
  std::vector<int64_t> labels;  // by the folder's own numbers
  for (size_t i = 0; i < data.classes.size(); ++i) {
    const auto named = std::find(format_.classes.begin(), format_.classes.end(), data.classes[i]);
    if (named != format_.classes.end()) {
      labels.push_back(named - format_.classes.begin());
    } else if (idx && i < format_.classes.size()) {
      labels.push_back(static_cast<int64_t>(i));  // IDX files hold numbers, not names
    } else {
      throw IoError("class " + data.classes[i] + " in " + folder + " is not a class of this model");
    }
  }
  for (int64_t& label : set.labels) label = labels[static_cast<size_t>(label)];
  return with_channels(set, format_, folder);
}

ImageSet ImageTaskData::read_input(const std::string& input) {
  if (input.starts_with("val:")) {
    const int64_t i = *number_of(input, "val:", validation().size());
    return slice(validation_, i, i + 1);
  }
  if (input.starts_with("test:")) {
    const int64_t i = *number_of(input, "test:", test().size());
    return slice(test_, i, i + 1);
  }
  constexpr std::string_view kPng = "data:image/png;base64,", kPixels = "data:image/x-portable-anymap;base64,";
  ImageSet one{.channels = format_.channels, .height = format_.height, .width = format_.width};
  one.labels = {-1};
  if (input.starts_with(kPng)) {
    const Bytes bytes = decode_base64(std::string_view(input).substr(kPng.size()));
    one.pixels = fit_picture(decode_png(bytes, "the picture"), one, "the picture");
  } else if (input.starts_with(kPixels)) {
    const Bytes bytes = decode_base64(std::string_view(input).substr(kPixels.size()));
    one.pixels = fit_picture(decode_pnm(bytes, "the picture"), one, "the picture");
  } else if (input.starts_with("data:")) {
    throw ConfigError("a data URL must begin with " + std::string(kPng) + " or " + std::string(kPixels));
  } else {
    one.pixels = fit_picture(read_png(input), one, input);
  }
  return one;
}

std::string ImageTaskData::folder() const { return source_ == kShapesSource ? "" : source_; }

void ImageTaskData::save(const std::string& folder) const {
  write_file_atomic(folder + kAsset, to_json(format_).dump(2) + "\n");
}

}  // namespace qkv
