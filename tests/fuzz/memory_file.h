// Files whose bytes are in memory, for readers that take a path: a folder of links into anonymous memory.
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#if !defined(__EMSCRIPTEN__)
#include <sys/mman.h>
#endif
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

namespace qkv::fuzz {

inline void require(bool promise) {
  if (!promise) std::abort();
}

/// A folder for the life of the process.
inline const std::string& folder() {
  static const std::string path = [] {
    std::string name = "/tmp/qkv-fuzz-XXXXXX";
    require(::mkdtemp(name.data()) != nullptr);
    return name;
  }();
  return path;
}

/// FOLDER/NAME with bytes that change from one input to the next.
class MemoryFile {
 public:
#if defined(__EMSCRIPTEN__)  // which has no anonymous memory: a file
  explicit MemoryFile(const std::string& name)
      : path_(folder() + "/" + name), fd_(::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600)) {
    require(fd_ >= 0);
  }
#else
  explicit MemoryFile(const std::string& name) : path_(folder() + "/" + name), fd_(::memfd_create("fuzz", 0)) {
    require(::symlink(("/proc/self/fd/" + std::to_string(fd_)).c_str(), path_.c_str()) == 0);
  }
#endif
  ~MemoryFile() {
    ::unlink(path_.c_str());
    ::rmdir(folder().c_str());
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  void fill(std::span<const uint8_t> bytes) {
    require(::ftruncate(fd_, 0) == 0);
    require(::pwrite(fd_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_;
};

/// An input as two files: the first byte says, in parts of 256, where the second begins.
inline std::pair<std::span<const uint8_t>, std::span<const uint8_t>> halves(const uint8_t* data, size_t size) {
  if (size == 0) return {};
  const std::span<const uint8_t> rest(data + 1, size - 1);
  const size_t at = rest.size() * data[0] / 256;
  return {rest.first(at), rest.subspan(at)};
}

}  // namespace qkv::fuzz
