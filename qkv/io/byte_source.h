// Bytes that are read a piece at a time: of a file that must stay as it is meanwhile, or held in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace qkv {

/// May be read by many threads at once.
class ByteSource {
 public:
  /// Opens a file. Nothing of it is kept, nor mapped: a file that becomes shorter while it is mapped would end its
  /// reader. Throws IoError, also for what is no file.
  static std::shared_ptr<const ByteSource> of_file(const std::string& path);
  static std::shared_ptr<const ByteSource> of_text(std::string text);
  /// Bytes of somebody else, who keeps them.
  static std::shared_ptr<const ByteSource> of_bytes(std::span<const std::byte> bytes);
  virtual ~ByteSource() = default;

  virtual uint64_t size() const = 0;
  /// The bytes from `offset` on, as many as asked for or as there are. Throws IoError when they cannot be read, or when
  /// the file has been written to since it was opened.
  virtual std::string read(uint64_t offset, uint64_t bytes) const = 0;
};

}  // namespace qkv
