// Files by pread, texts by substr.
#include "qkv/io/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>

#include "qkv/base/error.h"
#include "qkv/io/fd.h"
#include "qkv/io/file.h"

namespace qkv {
namespace {

class FileSource final : public ByteSource {
 public:
  explicit FileSource(const std::string& path)
      : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    if (fd_.get() < 0) fail(std::generic_category().message(errno));
    state_ = state();
    if (!S_ISREG(state_.st_mode)) fail("it is not a file");
    // Reading takes little memory, but a time that grows with the file.
    check_file_size(path, size(), limit_within_budget(std::numeric_limits<uint64_t>::max(), 4));
  }

  uint64_t size() const override { return static_cast<uint64_t>(state_.st_size); }

  std::string read(uint64_t offset, uint64_t bytes) const override {
    std::string text(offset >= size() ? 0 : std::min(bytes, size() - offset), '\0');
    for (size_t done = 0; done < text.size();) {
      const ssize_t n = ::pread(fd_.get(), text.data() + done, text.size() - done, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(std::generic_category().message(errno));
      if (n == 0) break;  // it has become shorter, as is found next
      done += static_cast<size_t>(n);
    }
    const struct stat now = state();
    const bool written = now.st_size != state_.st_size || now.st_mtim.tv_sec != state_.st_mtim.tv_sec ||
                         now.st_mtim.tv_nsec != state_.st_mtim.tv_nsec;
    if (written) fail("it was changed while it was being read; it must stay as it is until the end");
    return text;
  }

 private:
  struct stat state() const {
    struct stat info;
    if (::fstat(fd_.get(), &info) != 0) fail(std::generic_category().message(errno));
    return info;
  }
  [[noreturn]] void fail(const std::string& why) const { throw IoError("cannot read " + path_ + ": " + why); }

  std::string path_;
  Fd fd_;
  struct stat state_;
};

class TextSource final : public ByteSource {
 public:
  explicit TextSource(std::string text) : text_(std::move(text)) {}
  uint64_t size() const override { return text_.size(); }
  std::string read(uint64_t offset, uint64_t bytes) const override {
    return offset >= size() ? "" : text_.substr(static_cast<size_t>(offset), static_cast<size_t>(bytes));
  }

 private:
  std::string text_;
};

class BytesSource final : public ByteSource {
 public:
  explicit BytesSource(std::span<const std::byte> bytes) : bytes_(bytes) {}
  uint64_t size() const override { return bytes_.size(); }
  std::string read(uint64_t offset, uint64_t bytes) const override {
    if (offset >= size()) return "";
    const auto part =
        bytes_.subspan(static_cast<size_t>(offset), static_cast<size_t>(std::min(bytes, size() - offset)));
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace

std::shared_ptr<const ByteSource> ByteSource::of_bytes(std::span<const std::byte> bytes) {
  return std::make_shared<BytesSource>(bytes);
}

std::shared_ptr<const ByteSource> ByteSource::of_file(const std::string& path) {
  return std::make_shared<FileSource>(path);
}

std::shared_ptr<const ByteSource> ByteSource::of_text(std::string text) {
  return std::make_shared<TextSource>(std::move(text));
}

}  // namespace qkv
