// The images of a run: where they come from, how they are split, and what one must look like to be understood.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "qkv/base/settings.h"
#include "qkv/data/images.h"

namespace qkv {

/// What a run must know to read one more image: kept in its folder as images.json.
struct ImageFormat {
  std::string source;  // the folder the images came from; "shapes": generated
  int64_t channels = 1, height = 0, width = 0;
  std::vector<std::string> classes;
  ImageStatistics statistics;
};

/// Declares data, train-size and validation-size.
void declare_image_data(Settings& settings);

/// Training, validation and test images. They are read when first asked for, so that a trained run classifies pictures
/// without its data.
class ImageTaskData {
 public:
  /// `assets` is a run folder with images.json, or empty for a new run, which reads the data now. They are read from
  /// the folder named there unless the settings give another by its whole path. Throws IoError as read_images does,
  /// ConfigError when too few images are left to train on.
  ImageTaskData(const Settings& settings, const std::string& assets);

  const ImageFormat& format() const { return format_; }
  /// Where they are read from; empty: they are generated.
  std::string folder() const;
  /// Which of the training images are for validation is fixed, whatever the seed: val:17 is the same picture in every
  /// run on the same data.
  const ImageSet& train();
  const ImageSet& validation();
  const ImageSet& test();
  /// The images of another folder: the test set of IDX files and of PNG folders split into train and test, all images
  /// otherwise. Throws IoError when a class or the size is not the run's.
  ImageSet read_other(const std::string& folder) const;
  /// One image as a set: a PNG file's path, "data:image/png;base64,…", "val:17" or "test:17".
  /// Throws ConfigError on a number or URL that is none, IoError naming the file as read_png and fit_picture do.
  ImageSet read_input(const std::string& input);

  void save(const std::string& folder) const;

 private:
  void load();
  void split(const ImageSet& all, int64_t kept);

  std::string source_;
  uint64_t seed_;
  int64_t train_size_, validation_size_;
  ImageFormat format_;
  bool loaded_ = false;
  ImageSet train_, validation_, test_;
};

}  // namespace qkv
