// NumPy .npy arrays: read from files or memory without trusting them, written so that NumPy opens them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "qkv/base/shape.h"
#include "qkv/io/file.h"

namespace qkv {

/// The dtypes that are read and written.
enum class NpyType { kBool, kI8, kI16, kI32, kI64, kU8, kU16, kU32, kU64, kF16, kF32, kF64 };

/// Bytes of one element.
size_t item_size(NpyType type);
/// NumPy's name: "float32".
const char* type_name(NpyType type);
/// Whether it is float16, float32 or float64.
bool is_float(NpyType type);

/// One array: elements in C order and the machine's byte order, whatever the file had.
struct NpyArray {
  std::string name;  // where it came from, for messages
  Shape shape;
  NpyType type = NpyType::kF32;
  Bytes data;

  /// Values of any dtype, rounded to the nearest float or double.
  std::vector<float> to_f32() const;
  std::vector<double> to_f64() const;
  /// Integers and booleans. Throws IoError for floats and for unsigned values beyond int64.
  std::vector<int64_t> to_i64() const;
  /// Booleans as 0 and 1, or integers that are all 0 or 1. Throws IoError otherwise.
  std::vector<uint8_t> to_bool() const;
};

/// Reads format versions 1 to 3: bool, int8…int64, uint8…uint64, float16/32/64, either byte order, C or Fortran
/// order, at most 8 dimensions. Allocates no more than the file holds. Throws IoError naming `name` for any other
/// dtype (objects, records, strings, complex), a damaged or truncated file, or bytes after the array.
NpyArray parse_npy(std::span<const std::byte> file, const std::string& name);
/// The same for a file on disk.
NpyArray load_npy(const std::string& path);

/// The header of a C-ordered little-endian array: a multiple of 64 bytes, so the data that follows are aligned.
std::string npy_header(const Shape& shape, NpyType type);
/// Header and data in memory.
Bytes encode_npy(const Shape& shape, NpyType type, std::span<const std::byte> data);
/// Written atomically. Throws IoError, or ShapeError when shape and number of values differ.
void save_npy(const std::string& path, const Shape& shape, NpyType type, std::span<const std::byte> data);
void save_npy(const std::string& path, const Shape& shape, std::span<const float> values);
void save_npy(const std::string& path, const Shape& shape, std::span<const double> values);
void save_npy(const std::string& path, const Shape& shape, std::span<const int64_t> values);
/// One byte per element, 0 or 1.
void save_npy_bool(const std::string& path, const Shape& shape, std::span<const uint8_t> values);

}  // namespace qkv
