// Unpacking with zlib: gzip files and the streams inside PNG files. Built without it, both refuse in one line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace qkv {

inline bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }
/// A whole gzip file, its members one after another. Throws IoError naming it: truncated, damaged, more than `limit`
/// bytes unpacked, or more than 16 MiB that are over 100 times what they were packed.
std::string unpack_gzip(std::string_view packed, const std::string& name, uint64_t limit);

/// A zlib stream that unpacks to exactly out.size() bytes; false when it is damaged or does not.
bool unpack_zlib(std::span<const std::byte> packed, std::span<uint8_t> out);
/// The check sum of gzip and PNG.
uint32_t crc32_of(std::span<const std::byte> bytes);

}  // namespace qkv
