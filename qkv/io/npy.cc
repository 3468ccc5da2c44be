// Reading, converting and writing of .npy arrays.
#include "qkv/io/npy.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <type_traits>

#include "qkv/base/error.h"
#include "qkv/io/npy_header.h"

namespace qkv {
namespace {

static_assert(std::endian::native == std::endian::little, "the readers and writers of qkv/io assume little endian");

struct TypeInfo {
  NpyType type;
  const char* code;
  const char* name;
  size_t size;
};
constexpr TypeInfo kTypes[] = {
    {NpyType::kBool, "|b1", "bool", 1},   {NpyType::kI8, "|i1", "int8", 1},     {NpyType::kI16, "<i2", "int16", 2},
    {NpyType::kI32, "<i4", "int32", 4},   {NpyType::kI64, "<i8", "int64", 8},   {NpyType::kU8, "|u1", "uint8", 1},
    {NpyType::kU16, "<u2", "uint16", 2},  {NpyType::kU32, "<u4", "uint32", 4},  {NpyType::kU64, "<u8", "uint64", 8},
    {NpyType::kF16, "<f2", "float16", 2}, {NpyType::kF32, "<f4", "float32", 4}, {NpyType::kF64, "<f8", "float64", 8},
};
const TypeInfo& info(NpyType type) { return kTypes[static_cast<size_t>(type)]; }

// IEEE binary16, exact: every half is a float.
float half_to_float(uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const int fraction = half & 1023;
  float value;
  if (exponent == 31) {
    value = fraction != 0 ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<float>(fraction), -24);
  } else {
    value = std::ldexp(static_cast<float>(fraction | 1024), exponent - 25);
  }
  return (half & 0x8000) != 0 ? -value : value;
}

struct Half {
  uint16_t bits;
};
struct Bool {
  uint8_t byte;
};

// Calls fn(value) for every element with the file's own C++ type.
template <class T, class Fn>
void for_each_as(const Bytes& data, Fn&& fn) {
  for (size_t i = 0; i + sizeof(T) <= data.size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, data.data() + i, sizeof(T));
    if constexpr (std::is_same_v<T, Half>) {
      fn(half_to_float(value.bits));
    } else if constexpr (std::is_same_v<T, Bool>) {
      fn(static_cast<uint8_t>(value.byte != 0 ? 1 : 0));
    } else {
      fn(value);
    }
  }
}

template <class Fn>
void for_each(const NpyArray& array, Fn&& fn) {
  switch (array.type) {
    case NpyType::kBool:
      return for_each_as<Bool>(array.data, fn);
    case NpyType::kI8:
      return for_each_as<int8_t>(array.data, fn);
    case NpyType::kI16:
      return for_each_as<int16_t>(array.data, fn);
    case NpyType::kI32:
      return for_each_as<int32_t>(array.data, fn);
    case NpyType::kI64:
      return for_each_as<int64_t>(array.data, fn);
    case NpyType::kU8:
      return for_each_as<uint8_t>(array.data, fn);
    case NpyType::kU16:
      return for_each_as<uint16_t>(array.data, fn);
    case NpyType::kU32:
      return for_each_as<uint32_t>(array.data, fn);
    case NpyType::kU64:
      return for_each_as<uint64_t>(array.data, fn);
    case NpyType::kF16:
      return for_each_as<Half>(array.data, fn);
    case NpyType::kF32:
      return for_each_as<float>(array.data, fn);
    case NpyType::kF64:
      return for_each_as<double>(array.data, fn);
  }
}

template <class T>
std::vector<T> convert(const NpyArray& array) {
  const size_t count = array.data.size() / item_size(array.type);
  std::vector<T> out;
  if constexpr (std::is_floating_point_v<T>) {
    if (array.type == (sizeof(T) == 4 ? NpyType::kF32 : NpyType::kF64)) {
      out.resize(count);
      if (count > 0) std::memcpy(out.data(), array.data.data(), array.data.size());
      return out;
    }
  }
  out.reserve(count);
  for_each(array, [&](auto value) { out.push_back(static_cast<T>(value)); });
  return out;
}

void swap_bytes(Bytes& data, size_t item) {
  for (size_t i = 0; i + item <= data.size(); i += item) {
    std::reverse(data.begin() + static_cast<ptrdiff_t>(i), data.begin() + static_cast<ptrdiff_t>(i + item));
  }
}

// Column-major to row-major: walks the result in order and keeps the source offset beside it.
Bytes to_c_order(const Bytes& data, const Shape& shape, size_t item) {
  Bytes out(data.size());
  Shape strides = shape, index = shape;  // strides of the file, first dimension fastest
  int64_t step = 1;
  for (int d = 0; d < shape.rank(); ++d) {
    strides[d] = step;
    step *= shape[d];
    index[d] = 0;
  }
  int64_t source = 0;
  for (size_t at = 0; at < out.size(); at += item) {
    std::memcpy(out.data() + at, data.data() + static_cast<size_t>(source) * item, item);
    for (int d = shape.rank() - 1; d >= 0; --d) {
      source += strides[d];
      if (++index[d] < shape[d]) break;
      source -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
  return out;
}

// `file` is the whole file; its buffer becomes the array's, so a large file is never held twice.
NpyArray decode(Bytes file, const std::string& name) {
  const detail::NpyHeader header = detail::parse_npy_header(file, name);
  file.erase(file.begin(), file.begin() + static_cast<ptrdiff_t>(header.data_offset));
  const size_t item = item_size(header.type);
  if (header.big_endian && item > 1) swap_bytes(file, item);
  if (header.fortran_order && header.shape.rank() > 1 && !file.empty()) file = to_c_order(file, header.shape, item);
  return {name, header.shape, header.type, std::move(file)};
}

void check_count(const std::string& path, const Shape& shape, NpyType type, size_t bytes) {
  if (static_cast<uint64_t>(shape.numel()) * item_size(type) == bytes) return;
  throw ShapeError("[npy] " + path + ": shape " + shape.str() + " of " + type_name(type) + " does not fit " +
                   std::to_string(bytes / item_size(type)) + " values");
}

}  // namespace

size_t item_size(NpyType type) { return info(type).size; }
const char* type_name(NpyType type) { return info(type).name; }
std::optional<NpyType> detail::type_of_code(std::string_view code) {
  for (const TypeInfo& row : kTypes) {
    if (std::string_view(row.code).substr(1) == code) return row.type;
  }
  return std::nullopt;
}
bool is_float(NpyType type) { return type >= NpyType::kF16; }

std::vector<float> NpyArray::to_f32() const { return convert<float>(*this); }
std::vector<double> NpyArray::to_f64() const { return convert<double>(*this); }

std::vector<int64_t> NpyArray::to_i64() const {
  if (is_float(type)) throw IoError(name + ": holds " + type_name(type) + ", expected integers");
  if (type == NpyType::kU64) {
    for_each_as<uint64_t>(data, [&](uint64_t value) {
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        throw IoError(name + ": " + std::to_string(value) + " is too large for a 64-bit integer");
      }
    });
  }
  return convert<int64_t>(*this);
}

std::vector<uint8_t> NpyArray::to_bool() const {
  if (is_float(type)) throw IoError(name + ": holds " + type_name(type) + ", expected booleans");
  for_each(*this, [&](auto value) {
    if (value != 0 && value != 1) {
      throw IoError(name + ": holds " + type_name(type) + " values other than 0 and 1, expected booleans");
    }
  });
  return convert<uint8_t>(*this);
}

NpyArray parse_npy(std::span<const std::byte> file, const std::string& name) {
  detail::parse_npy_header(file, name);  // refuses a bad file before it is copied
  return decode(Bytes(file.begin(), file.end()), name);
}

NpyArray load_npy(const std::string& path) {
  std::error_code error;
  const bool regular = std::filesystem::is_regular_file(path, error);
  if (const uint64_t size = regular ? std::filesystem::file_size(path, error) : 0; size > detail::kMostHeaderBytes) {
    // A file that says it is large, and is not what it says, is not read.
    detail::parse_npy_header(bytes_of(read_part(path, 0, detail::kMostHeaderBytes)), path, size);
  }
  return decode(read_file(path), path);
}

std::string npy_header(const Shape& shape, NpyType type) {
  std::string dict = std::string("{'descr': '") + info(type).code + "', 'fortran_order': False, 'shape': (";
  for (const int64_t size : shape) dict += std::to_string(size) + ", ";
  if (shape.rank() > 1) dict.resize(dict.size() - 2);
  if (shape.rank() == 1) dict.pop_back();
  dict += "), }";
  constexpr size_t kStart = 10;
  const size_t total = (kStart + dict.size() + 1 + 63) / 64 * 64;
  dict.append(total - kStart - dict.size() - 1, ' ');
  dict += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(dict.size() & 255);
  header += static_cast<char>(dict.size() >> 8);
  return header + dict;
}

Bytes encode_npy(const Shape& shape, NpyType type, std::span<const std::byte> data) {
  check_count("array", shape, type, data.size());
  const std::string header = npy_header(shape, type);
  Bytes out;
  out.reserve(header.size() + data.size());
  const auto head = bytes_of(header);
  out.insert(out.end(), head.begin(), head.end());
  out.insert(out.end(), data.begin(), data.end());
  return out;
}

void save_npy(const std::string& path, const Shape& shape, NpyType type, std::span<const std::byte> data) {
  check_count(path, shape, type, data.size());
  AtomicFile file(path);
  file.write(npy_header(shape, type));
  file.write(data);
  file.commit();
}
void save_npy(const std::string& path, const Shape& shape, std::span<const float> values) {
  save_npy(path, shape, NpyType::kF32, std::as_bytes(values));
}
void save_npy(const std::string& path, const Shape& shape, std::span<const double> values) {
  save_npy(path, shape, NpyType::kF64, std::as_bytes(values));
}
void save_npy(const std::string& path, const Shape& shape, std::span<const int64_t> values) {
  save_npy(path, shape, NpyType::kI64, std::as_bytes(values));
}
void save_npy_bool(const std::string& path, const Shape& shape, std::span<const uint8_t> values) {
  save_npy(path, shape, NpyType::kBool, std::as_bytes(values));
}

}  // namespace qkv
