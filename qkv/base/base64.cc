// Base64, with padding; read with or without it.
#include "qkv/base/base64.h"

#include <cstdint>

#include "qkv/base/error.h"

namespace qkv {
namespace {

constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string encode_base64(std::span<const std::byte> bytes) {
  const auto byte = [&](size_t i) { return i < bytes.size() ? std::to_integer<uint32_t>(bytes[i]) : 0; };
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t left = bytes.size() - i;
    const uint32_t three = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    out += kLetters[three >> 18];
    out += kLetters[(three >> 12) & 63];
    out += left > 1 ? kLetters[(three >> 6) & 63] : '=';
    out += left > 2 ? kLetters[three & 63] : '=';
  }
  return out;
}

std::vector<std::byte> decode_base64(std::string_view text) {
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  std::vector<std::byte> bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const size_t value = kLetters.find(c);
    if (value == std::string_view::npos) throw ConfigError("a data URL with a character that is not base64");
    bits = (bits << 6) | static_cast<uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<std::byte>(bits >> count));
  }
  return bytes;
}

}  // namespace qkv
