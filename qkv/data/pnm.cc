// Plain pixels with a line about their size (PGM and PPM): what a page hands over after its canvas has decoded a file.
#include <charconv>
#include <string_view>

#include "qkv/base/error.h"
#include "qkv/data/images.h"

namespace qkv {
namespace {

constexpr int64_t kLargestSide = 8192;

// The next whole number and one space after it; -1 when there is none.
int64_t next_number(std::string_view& text) {
  int64_t value = -1;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest == end || (*rest != ' ' && *rest != '\n')) return -1;
  text.remove_prefix(static_cast<size_t>(rest - text.data()) + 1);
  return value;
}

}  // namespace

Picture decode_pnm(std::span<const std::byte> bytes, const std::string& name) {
  const auto fail = [&](const char* what) { return IoError("cannot read " + name + ": " + what); };
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const bool grey = text.starts_with("P5\n");
  if (!grey && !text.starts_with("P6\n")) throw fail("it is neither PGM nor PPM");
  text.remove_prefix(3);
  Picture p;
  p.width = next_number(text);
  p.height = next_number(text);
  if (p.width < 1 || p.height < 1 || p.width > kLargestSide || p.height > kLargestSide || next_number(text) != 255) {
    throw fail("its first lines are not 'P5' or 'P6', width and height, 255");
  }
  const auto plane = static_cast<size_t>(p.height * p.width);
  const size_t channels = grey ? 1 : 3;
  if (text.size() != channels * plane) throw fail("it holds fewer or more pixels than it says");
  p.pixels.resize(3 * plane);
  for (size_t at = 0; at < plane; ++at) {
    for (size_t c = 0; c < 3; ++c) {
      p.pixels[c * plane + at] = static_cast<uint8_t>(text[channels * at + (grey ? 0 : c)]);
    }
  }
  return p;
}

}  // namespace qkv
