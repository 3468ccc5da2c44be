// libFuzzer: no bytes make the PNG reader crash, read outside them or return a picture of another size than its pixels.
// Check sums would refuse nearly every change, so each input is read three times: as it is, with its chunks' sums made
// right, and as a header, palette, transparency and pixels of which a whole PNG is made.
#include <algorithm>

#include "fuzz/memory_file.h"
#include "qkv/base/error.h"
#include "qkv/data/images.h"
#include "qkv/data/inflate.h"

namespace {

void read(const std::string& png) {
  const qkv::Picture picture = qkv::decode_png(std::as_bytes(std::span(png)), "fuzz");
  qkv::fuzz::require(picture.pixels.size() == static_cast<size_t>(3 * picture.height * picture.width));
  uint64_t sum = 0;
  for (const uint8_t pixel : picture.pixels) sum += pixel;
  qkv::fuzz::require(sum <= 255 * picture.pixels.size());
}

std::string four_bytes(size_t v) {
  return {static_cast<char>(v >> 24), static_cast<char>(v >> 16), static_cast<char>(v >> 8), static_cast<char>(v)};
}

std::string sum_of(const std::string& typed) { return four_bytes(qkv::crc32_of(std::as_bytes(std::span(typed)))); }

std::string with_sums(const std::string& bytes) {
  std::string png = bytes;
  for (size_t at = 8; at + 12 <= png.size();) {
    size_t length = 0;
    for (size_t i = 0; i < 4; ++i) length = length << 8 | static_cast<uint8_t>(png[at + i]);
    if (length > png.size() - at - 12) break;
    png.replace(at + 8 + length, 4, sum_of(png.substr(at + 4, 4 + length)));
    at += 12 + length;
  }
  return png;
}

std::string chunk(const std::string& type, const std::string& content) {
  return four_bytes(content.size()) + type + content + sum_of(type + content);
}

// As zlib packs without compressing: blocks with their length and its complement, and Adler's sum.
std::string stored(const std::string& bytes) {
  constexpr size_t kMost = 65535, kPrime = 65521;
  std::string out = "\x78\x01";
  for (size_t at = 0; at == 0 || at < bytes.size(); at += kMost) {
    const size_t n = std::min(kMost, bytes.size() - at);
    out += {static_cast<char>(at + n == bytes.size()), static_cast<char>(n), static_cast<char>(n >> 8),
            static_cast<char>(~n), static_cast<char>(~n >> 8)};
    out += bytes.substr(at, n);
  }
  size_t a = 1, b = 0;
  for (const char c : bytes) {
    a = (a + static_cast<uint8_t>(c)) % kPrime;
    b = (b + a) % kPrime;
  }
  return out + four_bytes(b << 16 | a);
}

// The bytes of all rows, filters included, of a picture of this kind.
size_t row_bytes(size_t width, size_t height, size_t depth, size_t color, bool interlaced) {
  constexpr size_t kAdam7[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                   {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
  const size_t bits = depth * (color == 2 ? 3 : color == 4 ? 2 : color == 6 ? 4 : 1);
  if (!interlaced) return height * (1 + (width * bits + 7) / 8);
  size_t bytes = 0;
  for (const auto& [x, y, dx, dy] : kAdam7) {
    const size_t columns = (width - std::min(x, width) + dx - 1) / dx,
                 rows = (height - std::min(y, height) + dy - 1) / dy;
    if (columns > 0) bytes += rows * (1 + (columns * bits + 7) / 8);
  }
  return bytes;
}

// Eight bytes of sizes and kinds, then palette, transparency and rows with their filters.
std::string built(const std::string& from) {
  constexpr size_t kHead = 8;
  if (from.size() < kHead) return "";
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(from[i]); };
  std::string rest = from.substr(kHead);
  const auto take = [&](size_t n) {
    const std::string taken = rest.substr(0, n);
    rest.erase(0, taken.size());
    return taken;
  };
  std::string png =
      "\x89PNG\r\n\x1a\n" + chunk("IHDR", four_bytes(byte(0) % 40 + 1) + four_bytes(byte(1) % 40 + 1) +
                                              std::string{from[2], from[3], 0, 0, static_cast<char>(byte(4) & 1)});
  if (byte(5) != 0) png += chunk("PLTE", take(byte(5)));
  if (byte(6) != 0) png += chunk("tRNS", take(byte(6)));
  if (byte(7) % 8 != 0)
    rest.resize(row_bytes(byte(0) % 40 + 1, byte(1) % 40 + 1, byte(2), byte(3), (byte(4) & 1) != 0));
  return png + chunk("IDAT", stored(rest)) + chunk("IEND", "");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  for (const auto make : {+[](const std::string& all) { return all; }, &with_sums, &built}) {
    try {
      read(make(bytes));
    } catch (const qkv::Error&) {
      // Refused with a message: that is what bad input should get.
    }
  }
  return 0;
}
