// Unpacking with zlib.
#include "qkv/data/inflate.h"

#include <zlib.h>

#include <algorithm>

#include "qkv/base/budget.h"
#include "qkv/base/error.h"

namespace qkv {
namespace {

// zlib's state, freed on every way out.
class Inflater {
 public:
  Inflater(std::string_view packed, const std::string& path) : packed_(packed), path_(path) {
    constexpr int kGzipOnly = 15 + 16;
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK) fail("zlib cannot start");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  std::string all(uint64_t limit) {
    std::string out;
    while (true) {
      const int status = step(out, limit);
      if (status != Z_STREAM_END) continue;
      if (!next_member()) return out;
    }
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const { throw IoError("cannot read " + path_ + ": " + reason); }

  int step(std::string& out, uint64_t limit) {
    // A full buffer means that zlib may hold more output although it has taken all its input.
    if (stream_.avail_in == 0 && !buffer_was_full_) {
      const size_t size = std::min(packed_.size() - fed_, kChunk);
      if (size == 0) fail("the gzip data is truncated");
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed_.data() + fed_));
      stream_.avail_in = static_cast<uInt>(size);
      fed_ += size;
    }
    stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
    stream_.avail_out = static_cast<uInt>(buffer_.size());
    const int status = inflate(&stream_, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) fail("the gzip data is damaged");
    buffer_was_full_ = stream_.avail_out == 0;
    out.append(buffer_.data(), buffer_.size() - stream_.avail_out);
    check_budget(4 * static_cast<int64_t>(out.size()));  // it will be copied into lines and tokens
    if (out.size() > limit) fail("it unpacks to more than " + std::to_string(limit) + " bytes");
    if (out.size() > kSmall && out.size() / kMostTimes > packed_.size()) {
      fail("it unpacks to more than " + std::to_string(kMostTimes) + " times its size");
    }
    return status;
  }

  // Whether another gzip member follows; zero padding after the last one is allowed, as gzip itself does.
  bool next_member() {
    const size_t used = fed_ - stream_.avail_in;
    const std::string_view rest = packed_.substr(used);
    if (rest.find_first_not_of('\0') == std::string_view::npos) return false;
    if (!is_gzip(rest)) fail("there are other bytes after the gzip data");
    fed_ = used;
    stream_.avail_in = 0;
    buffer_was_full_ = false;
    if (inflateReset(&stream_) != Z_OK) fail("zlib cannot restart");
    return true;
  }

  static constexpr size_t kChunk = size_t{1} << 20;
  // Text is packed to a third or a tenth of itself; a file made to fill the memory, to a thousandth.
  static constexpr size_t kMostTimes = 100, kSmall = size_t{1} << 24;
  std::string_view packed_;
  const std::string& path_;
  z_stream stream_{};
  bool buffer_was_full_ = false;
  size_t fed_ = 0;  // bytes of packed_ handed to zlib
  std::string buffer_ = std::string(size_t{1} << 16, '\0');
};

}  // namespace

std::string unpack_gzip(std::string_view packed, const std::string& name, uint64_t limit) {
  return Inflater(packed, name).all(limit);
}

bool unpack_zlib(std::span<const std::byte> packed, std::span<uint8_t> out) {
  uLongf size = out.size();
  const auto* from = reinterpret_cast<const Bytef*>(packed.data());
  return uncompress(out.data(), &size, from, packed.size()) == Z_OK && size == out.size();
}

uint32_t crc32_of(std::span<const std::byte> bytes) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace qkv
