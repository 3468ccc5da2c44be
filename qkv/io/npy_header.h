// The header of a .npy file: a Python dictionary literal, read by a parser that knows no more than it must.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "qkv/base/shape.h"
#include "qkv/io/npy.h"

namespace qkv::detail {

struct NpyHeader {
  NpyType type = NpyType::kF32;
  bool big_endian = false;
  bool fortran_order = false;
  Shape shape;
  size_t data_offset = 0;
  size_t data_bytes = 0;  // what shape and type ask for; the file holds exactly this after data_offset
};

/// The type that NumPy writes so without its byte order: "f4"; nothing for any other.
std::optional<NpyType> type_of_code(std::string_view code);
/// Bytes of an array of this shape; nothing when they do not fit in 63 bits. A size of zero does not excuse the others
/// from fitting: strides are computed too.
std::optional<uint64_t> array_bytes(const Shape& shape, size_t item);
/// Bytes that hold any header that is read.
inline constexpr size_t kMostHeaderBytes = size_t{1} << 14;
/// `file` is the whole file, or its first kMostHeaderBytes of `whole`. Throws IoError naming `name`.
NpyHeader parse_npy_header(std::span<const std::byte> file, const std::string& name, uint64_t whole = 0);

}  // namespace qkv::detail
