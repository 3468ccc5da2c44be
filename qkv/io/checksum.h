// Checksums of the files in a folder, kept beside them, so that damage is noticed before anything is read from them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "qkv/io/file.h"

namespace qkv {

/// XXH64 (Collet 2012) with seed 0: far faster than the disk. It finds damage, not forgery.
class Xxh64 {
 public:
  Xxh64();
  /// Bytes that follow those before.
  void add(std::span<const std::byte> bytes);
  /// The checksum of all so far.
  uint64_t sum() const;

 private:
  void mix(const std::byte* stripe);

  std::array<uint64_t, 4> lanes_;
  std::array<std::byte, 32> rest_;  // what does not fill a stripe yet
  size_t waiting_ = 0;
  uint64_t bytes_ = 0;
};
uint64_t xxh64(std::span<const std::byte> bytes);
/// Of a file of any size, read in pieces, and how many bytes it has. Throws IoError.
struct FileSum {
  uint64_t bytes = 0, sum = 0;
};
FileSum sum_of_file(const std::string& path);

/// FOLDER/CHECKSUMS: one line "HEX  NAME" a file, which `xxhsum -c CHECKSUMS` checks too.
class Checksums {
 public:
  /// Reads the named files of the folder and writes their checksums. Throws IoError.
  static void write(const std::string& folder, const std::vector<std::string>& names);
  /// Empty when the folder has none, as those of qkv 0.1. Throws IoError when the list itself is damaged.
  static Checksums load(const std::string& folder);

  /// Whether that file is listed.
  bool has(const std::string& name) const { return sums_.contains(name); }
  /// Throws IoError "PATH: damaged: …" when the file of that name was written with another sum than xxh64(its bytes),
  /// or when there is a list without it.
  void check(const std::string& name, uint64_t sum) const;
  /// The same for every listed file, read from the disk. Throws IoError for one larger than 256 MiB that is no .txt.
  void check_all() const;

 private:
  explicit Checksums(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;
  std::map<std::string, uint64_t> sums_;
};

}  // namespace qkv
