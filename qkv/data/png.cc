// Decoding PNG: chunks, filters, interlacing and every kind of pixel, as libpng reads them.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "qkv/base/budget.h"
#include "qkv/base/error.h"
#include "qkv/data/images.h"
#include "qkv/data/inflate.h"

namespace qkv {
namespace {

constexpr int64_t kLargestSide = 8192, kMostPixels = int64_t{1} << 24;
constexpr unsigned char kSignature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
constexpr const char* kDamaged = "the PNG data is damaged or truncated";

using ByteSpan = std::span<const std::byte>;

uint32_t big_endian(ByteSpan bytes) {
  uint32_t value = 0;
  for (const std::byte b : bytes.first(4)) value = (value << 8) | std::to_integer<uint32_t>(b);
  return value;
}

/// Every other row and column of one pass of Adam7, or the whole picture.
struct Pass {
  int64_t x0, y0, dx, dy;
};
constexpr Pass kWhole[] = {{0, 0, 1, 1}};
constexpr Pass kAdam7[] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                           {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};

class PngDecoder {
 public:
  PngDecoder(ByteSpan bytes, const std::string& name) : left_(bytes), name_(name) {}

  Picture decode() {
    if (left_.size() < sizeof kSignature || std::memcmp(left_.data(), kSignature, sizeof kSignature) != 0) {
      fail("it is not a PNG file");
    }
    left_ = left_.subspan(sizeof kSignature);
    // A size that no picture may have is said before a check sum that then cannot be right either.
    if (left_.size() > 16 && std::memcmp(left_.data() + 4, "IHDR", 4) == 0) read_size(left_.subspan(8));
    read_header(chunk("IHDR"));
    read_chunks();
    const auto passes = interlaced_ ? std::span<const Pass>(kAdam7) : std::span<const Pass>(kWhole);
    size_t size = 0;
    for (const Pass& p : passes) size += pass_bytes(p);
    std::vector<uint8_t> raw(size);
    if (!unpack_zlib(packed_, raw)) fail(kDamaged);
    picture_ = {
        .height = height_, .width = width_, .pixels = std::vector<uint8_t>(3 * static_cast<size_t>(height_ * width_))};
    std::span<uint8_t> rest(raw);
    for (const Pass& p : passes) {
      draw(p, rest.first(pass_bytes(p)));
      rest = rest.subspan(pass_bytes(p));
    }
    return std::move(picture_);
  }

 private:
  [[noreturn]] void fail(const char* reason) const { throw IoError("cannot read " + name_ + ": " + reason); }

  /// The next chunk's content; `type_` is its type. With `expected`, any other type is a fault.
  ByteSpan chunk(std::string_view expected = "") {
    if (left_.size() < 12) fail(kDamaged);
    const size_t length = big_endian(left_);
    if (length > left_.size() - 12) fail(kDamaged);
    type_.assign(reinterpret_cast<const char*>(left_.data()) + 4, 4);
    const ByteSpan content = left_.subspan(8, length);
    if (big_endian(left_.subspan(8 + length)) != crc32_of(left_.subspan(4, 4 + length))) fail(kDamaged);
    if (!expected.empty() && type_ != expected) fail(kDamaged);
    left_ = left_.subspan(12 + length);
    return content;
  }

  void read_size(ByteSpan h) {
    width_ = big_endian(h);
    height_ = big_endian(h.subspan(4));
    if (width_ < 1 || height_ < 1 || width_ > kLargestSide || height_ > kLargestSide) {
      fail("its sides must be between 1 and 8192 pixels");
    }
    if (width_ * height_ > kMostPixels) fail("it has more than 16,777,216 pixels");
  }

  void read_header(ByteSpan h) {
    if (h.size() != 13) fail(kDamaged);
    read_size(h);
    depth_ = std::to_integer<int>(h[8]);
    color_ = std::to_integer<int>(h[9]);
    interlaced_ = h[12] == std::byte{1};
    const bool small = depth_ == 1 || depth_ == 2 || depth_ == 4, deep = depth_ == 8 || depth_ == 16;
    const bool known = color_ == kGrey      ? small || deep
                       : color_ == kPalette ? small || depth_ == 8
                                            : deep && (color_ == kRgb || color_ == kGreyAlpha || color_ == kRgba);
    if (!known || h[10] != std::byte{0} || h[11] != std::byte{0} || h[12] > std::byte{1}) fail(kDamaged);
    channels_ = color_ == kRgb ? 3 : color_ == kGreyAlpha ? 2 : color_ == kRgba ? 4 : 1;
  }

  void read_chunks() {
    for (ByteSpan content = chunk(); type_ != "IEND"; content = chunk()) {
      if (type_ == "IDAT") {
        packed_.insert(packed_.end(), content.begin(), content.end());
      } else if (type_ == "PLTE" && palette_.empty()) {
        if (content.empty() || content.size() % 3 != 0 || content.size() > size_t{3} * 256) fail(kDamaged);
        palette_.assign(content.begin(), content.end());
      } else if (type_ == "tRNS") {
        transparent_.assign(content.begin(), content.end());
      } else if ((type_[0] & 0x20) == 0) {
        fail(kDamaged);  // a chunk that must be understood, and is not
      }
    }
    if (packed_.empty() || (color_ == kPalette && palette_.empty())) fail(kDamaged);
    if (color_ != kPalette && transparent_.size() != 2 * static_cast<size_t>(channels_)) transparent_.clear();
  }

  int64_t columns(const Pass& p) const { return (width_ - p.x0 + p.dx - 1) / p.dx; }
  int64_t rows(const Pass& p) const { return (height_ - p.y0 + p.dy - 1) / p.dy; }
  size_t row_bytes(const Pass& p) const { return static_cast<size_t>((columns(p) * channels_ * depth_ + 7) / 8); }
  size_t pass_bytes(const Pass& p) const {
    return columns(p) > 0 && rows(p) > 0 ? static_cast<size_t>(rows(p)) * (1 + row_bytes(p)) : 0;
  }

  /// What the row's filter added is taken away again.
  void unfilter(uint8_t filter, std::span<uint8_t> row, std::span<const uint8_t> above) const {
    if (filter > 4) fail(kDamaged);
    const auto step = static_cast<size_t>(std::max(1, channels_ * depth_ / 8));
    for (size_t i = 0; i < row.size(); ++i) {
      const int a = i >= step ? row[i - step] : 0, b = above.empty() ? 0 : above[i];
      const int c = i >= step && !above.empty() ? above[i - step] : 0;
      const int pa = std::abs(b - c), pb = std::abs(a - c), pc = std::abs(a + b - 2 * c);
      const int paeth = pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
      const std::array<int, 5> guess{0, a, b, (a + b) / 2, paeth};
      row[i] = static_cast<uint8_t>(row[i] + guess[filter]);
    }
  }

  void draw(const Pass& p, std::span<uint8_t> bytes) {
    std::span<const uint8_t> above;
    const size_t size = row_bytes(p);
    for (size_t at = 0, y = static_cast<size_t>(p.y0); at < bytes.size();
         at += 1 + size, y += static_cast<size_t>(p.dy)) {
      check_budget();
      const std::span<uint8_t> row = bytes.subspan(at + 1, size);
      unfilter(bytes[at], row, above);
      above = row;
      for (int64_t i = 0; i < columns(p); ++i) put(p.x0 + i * p.dx, static_cast<int64_t>(y), row, i);
    }
  }

  /// Sample k of a row, as many bits as it has.
  int sample(std::span<const uint8_t> row, int64_t k) const {
    const auto bit = static_cast<size_t>(k * depth_);
    if (depth_ == 16) return row[bit / 8] << 8 | row[bit / 8 + 1];
    return row[bit / 8] >> (8 - depth_ - static_cast<int>(bit % 8)) & ((1 << depth_) - 1);
  }
  int eight_bits(int value) const { return depth_ == 16 ? value >> 8 : value * 255 / ((1 << depth_) - 1); }

  void put(int64_t x, int64_t y, std::span<const uint8_t> row, int64_t i) {
    std::array<int, 3> rgb{};
    int alpha = 255;
    if (color_ == kPalette) {
      const auto index = static_cast<size_t>(sample(row, i));
      if (3 * index + 2 >= palette_.size()) fail(kDamaged);
      for (size_t c = 0; c < 3; ++c) rgb[c] = std::to_integer<int>(palette_[3 * index + c]);
      if (index < transparent_.size()) alpha = std::to_integer<int>(transparent_[index]);
    } else {
      const bool grey = channels_ < 3;
      bool hidden = !transparent_.empty();
      for (int c = 0; c < 3; ++c) {
        const int value = sample(row, i * channels_ + (grey ? 0 : c));
        rgb[static_cast<size_t>(c)] = eight_bits(value);
        const auto key = static_cast<size_t>(grey ? 0 : 2 * c);
        hidden = hidden &&
                 value == (std::to_integer<int>(transparent_[key]) << 8 | std::to_integer<int>(transparent_[key + 1]));
      }
      if (hidden) alpha = 0;
      if (color_ == kGreyAlpha || color_ == kRgba) alpha = eight_bits(sample(row, i * channels_ + channels_ - 1));
    }
    for (size_t c = 0; c < 3; ++c) {
      const int product = alpha * rgb[c] + 0x80;  // black shows through where it is transparent
      picture_.pixels[static_cast<size_t>((static_cast<int64_t>(c) * height_ + y) * width_ + x)] =
          static_cast<uint8_t>((product + (product >> 8)) >> 8);
    }
  }

  static constexpr int kGrey = 0, kRgb = 2, kPalette = 3, kGreyAlpha = 4, kRgba = 6;
  ByteSpan left_;
  const std::string& name_;
  std::string type_;
  int64_t width_ = 0, height_ = 0;
  int depth_ = 0, color_ = 0, channels_ = 1;
  bool interlaced_ = false;
  std::vector<std::byte> packed_, palette_, transparent_;
  Picture picture_;
};

}  // namespace

Picture decode_png(std::span<const std::byte> bytes, const std::string& name) {
  return PngDecoder(bytes, name).decode();
}

}  // namespace qkv
