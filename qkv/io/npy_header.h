// The header of a .npy file: a Python dictionary literal, read by a parser that knows no more than it must.
#pragma once

#include <cstddef>
#include <span>
#include <string>

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

/// Throws IoError naming `name`.
NpyHeader parse_npy_header(std::span<const std::byte> file, const std::string& name);

}  // namespace qkv::detail
