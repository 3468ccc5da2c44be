// Named tensors in one file in the safetensors format: a JSON header with byte ranges, then the raw data.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/base/shape.h"
#include "qkv/io/file.h"

namespace qkv {

/// One tensor to be written: its bytes stay the caller's.
struct SafetensorView {
  std::string name;
  std::string dtype;  // "F32" or "F64"
  Shape shape;
  std::span<const std::byte> bytes;
};
/// A view of an array of that shape.
SafetensorView safetensor_view(std::string name, const Shape& shape, std::span<const float> values);
SafetensorView safetensor_view(std::string name, const Shape& shape, std::span<const double> values);

/// Free text that a file carries beside its tensors.
using SafetensorsMetadata = std::map<std::string, std::string>;

/// Writes atomically; the header is padded to a multiple of 8 bytes and wider dtypes come first, so every tensor is
/// aligned. Same input, same bytes. Throws IoError, or ShapeError for a name used twice or a count that does not fit.
void save_safetensors(const std::string& path, const std::vector<SafetensorView>& tensors,
                      const SafetensorsMetadata& metadata = {});

/// A tensor found in a file.
struct Safetensor {
  std::string name;
  std::string dtype;
  Shape shape;
  size_t begin = 0, end = 0;  // in the file's data
};

/// A file that has been checked as a whole: the byte ranges cover the data exactly, without overlap or gap, each as
/// long as its dtype and shape ask for, and no name occurs twice.
class SafetensorsFile {
 public:
  /// Throws IoError naming the file, and the tensor where one is at fault.
  static SafetensorsFile load(const std::string& path);
  /// The same for bytes in memory; `name` is for messages.
  static SafetensorsFile parse(Bytes file, const std::string& name);

  const std::string& name() const { return name_; }
  /// In the order of their data.
  const std::vector<Safetensor>& tensors() const { return tensors_; }
  const SafetensorsMetadata& metadata() const { return metadata_; }

  /// Whether the file has a tensor of that name.
  bool contains(std::string_view tensor) const { return find(tensor) != nullptr; }
  /// nullptr when there is none.
  const Safetensor* find(std::string_view tensor) const;
  /// Throws IoError "FILE: no tensor 'NAME'".
  const Safetensor& at(std::string_view tensor) const;

  /// Its raw data, as long as the file object lives.
  std::span<const std::byte> bytes(const Safetensor& tensor) const;
  /// The values of an F32 tensor of exactly this shape; IoError says what the file has instead.
  std::vector<float> f32(std::string_view tensor, const Shape& shape) const;
  /// The same for an F64 tensor.
  std::vector<double> f64(std::string_view tensor, const Shape& shape) const;

 private:
  /// Of the first bytes of a file that has `whole`.
  void read_header(std::span<const std::byte> start, uint64_t whole, const std::string& name);

  std::string name_;
  Bytes file_;
  size_t data_offset_ = 0;
  std::vector<Safetensor> tensors_;
  SafetensorsMetadata metadata_;
};

}  // namespace qkv
