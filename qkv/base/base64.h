// Bytes as text, as data URLs hold them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

std::string encode_base64(std::span<const std::byte> bytes);
/// Throws ConfigError for a character that is not base64.
std::vector<std::byte> decode_base64(std::string_view text);

}  // namespace qkv
