// Uncompressed .tar archives (ustar): files in, files out; nothing but regular files is taken from one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/io/byte_source.h"
#include "qkv/io/file.h"

namespace qkv {

/// Where a file is inside an archive.
struct TarEntry {
  std::string name;  // as TarFile's
  uint64_t begin = 0, bytes = 0;
};

/// The files of an archive of which only the headers are read. Throws as parse_tar does.
std::vector<TarEntry> list_tar(const ByteSource& archive, const std::string& name);

/// A file inside an archive.
struct TarFile {
  std::string name;  // "run/config.json": relative, no part of it empty, "." or ".."
  std::span<const std::byte> bytes;
};

/// The files of an archive, whose bytes must outlive them; folders are left out. Throws IoError naming `name`: not a
/// .tar, damaged, cut off, a link or a device, more than 10,000 files and folders, or a name that leads elsewhere.
std::vector<TarFile> parse_tar(std::span<const std::byte> archive, const std::string& name);

/// Builds an archive that `tar xf` unpacks.
class TarWriter {
 public:
  /// Throws IoError for a name that the format cannot hold: 155 bytes of folders and 100 of the file's own.
  void add(const std::string& name, std::span<const std::byte> bytes);
  void add(const std::string& name, std::string_view text) { add(name, bytes_of(text)); }
  /// The archive with its end. Nothing can be added after it.
  Bytes finish();

 private:
  Bytes archive_;
};

}  // namespace qkv
