// UTF-8: decoding, checking, cutting into characters, and the few Unicode facts the data layer needs.
#include "qkv/base/utf8.h"

#include <cstdio>

namespace qkv {
namespace {

// How many bytes a character that begins with `lead` takes; 0 when nothing begins so.
int64_t length_of_lead(uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

// Blocks where upper and lower case alternate; `odd_is_upper` where the upper letter is the odd one.
char32_t lower_of_pair(char32_t c, bool odd_is_upper) {
  const bool upper = ((c & 1) != 0) == odd_is_upper;
  return upper ? c + 1 : c;
}

char32_t lower_latin(char32_t c) {
  if (c <= 0x00DE) return c >= 0x00C0 && c != 0x00D7 ? c + 32 : c;
  if (c < 0x0100) return c;
  if (c == 0x0130) return U'i';
  if (c == 0x0131 || c == 0x0138 || c == 0x0149 || c == 0x017F) return c;
  if (c == 0x0178) return 0x00FF;
  if ((c >= 0x0139 && c <= 0x0148) || (c >= 0x0179 && c <= 0x017E)) return lower_of_pair(c, true);
  if (c <= 0x0177 || c == 0x01A0) return lower_of_pair(c, false);
  if (c == 0x01AF) return 0x01B0;
  if (c >= 0x01CD && c <= 0x01DC) return lower_of_pair(c, true);
  if ((c >= 0x01DE && c <= 0x01EF) || (c >= 0x01F8 && c <= 0x021F) || (c >= 0x0222 && c <= 0x0233))
    return lower_of_pair(c, false);
  return c;
}

}  // namespace

Utf8Char decode_utf8(std::string_view text, int64_t at) {
  const Utf8Char bad{0xFFFD, 1, false};
  const auto byte = [&](int64_t i) { return static_cast<uint8_t>(text[static_cast<size_t>(i)]); };
  const uint8_t lead = byte(at);
  const int64_t length = length_of_lead(lead);
  if (length == 1) return {lead, 1, true};
  if (length == 0 || at + length > static_cast<int64_t>(text.size())) return bad;
  char32_t value = lead & (0x7F >> length);
  for (int64_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return bad;
    value = (value << 6) | (byte(at + i) & 0x3F);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (overlong || surrogate || value > 0x10FFFF) return bad;
  return {value, length, true};
}

void append_utf8(std::string& out, char32_t value) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (value < 0x80) {
    put(value);
  } else if (value < 0x800) {
    put(0xC0 | (value >> 6));
    put(0x80 | (value & 0x3F));
  } else if (value < 0x10000) {
    put(0xE0 | (value >> 12));
    put(0x80 | ((value >> 6) & 0x3F));
    put(0x80 | (value & 0x3F));
  } else {
    put(0xF0 | (value >> 18));
    put(0x80 | ((value >> 12) & 0x3F));
    put(0x80 | ((value >> 6) & 0x3F));
    put(0x80 | (value & 0x3F));
  }
}

std::string utf8_of(char32_t value) {
  std::string out;
  append_utf8(out, value);
  return out;
}

int64_t first_invalid_utf8(std::string_view text) {
  for (int64_t at = 0; at < static_cast<int64_t>(text.size());) {
    const Utf8Char c = decode_utf8(text, at);
    if (!c.valid) return at;
    at += c.bytes;
  }
  return -1;
}

std::vector<std::string_view> utf8_characters(std::string_view text) {
  std::vector<std::string_view> out;
  for (int64_t at = 0; at < static_cast<int64_t>(text.size());) {
    const int64_t bytes = decode_utf8(text, at).bytes;
    out.push_back(text.substr(static_cast<size_t>(at), static_cast<size_t>(bytes)));
    at += bytes;
  }
  return out;
}

std::u32string utf8_to_code_points(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (int64_t at = 0; at < static_cast<int64_t>(text.size());) {
    const Utf8Char c = decode_utf8(text, at);
    out.push_back(c.value);
    at += c.bytes;
  }
  return out;
}

bool is_unicode_space(char32_t c) {
  return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  int64_t begin = -1;
  const auto end_word = [&](int64_t end) {
    if (begin >= 0) words.push_back(text.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
    begin = -1;
  };
  int64_t at = 0;
  while (at < static_cast<int64_t>(text.size())) {
    const Utf8Char c = decode_utf8(text, at);
    if (is_unicode_space(c.value)) {
      end_word(at);
    } else if (begin < 0) {
      begin = at;
    }
    at += c.bytes;
  }
  end_word(at);
  return words;
}

char32_t unicode_lower(char32_t c) {
  if (c < 0x80) return c >= U'A' && c <= U'Z' ? c + 32 : c;
  if (c < 0x0250) return lower_latin(c);
  if (c >= 0x0391 && c <= 0x03AB && c != 0x03A2) return c + 32;
  if (c == 0x0386) return 0x03AC;
  if (c >= 0x0388 && c <= 0x038A) return c + 37;
  if (c == 0x038C) return 0x03CC;
  if (c == 0x038E || c == 0x038F) return c + 63;
  if (c >= 0x0400 && c <= 0x040F) return c + 80;
  if (c >= 0x0410 && c <= 0x042F) return c + 32;
  if ((c >= 0x0460 && c <= 0x0481) || (c >= 0x048A && c <= 0x04BF) || (c >= 0x04D0 && c <= 0x052F))
    return lower_of_pair(c, false);
  if (c == 0x04C0) return 0x04CF;
  if (c >= 0x04C1 && c <= 0x04CE) return lower_of_pair(c, true);
  if (c >= 0x0531 && c <= 0x0556) return c + 48;
  if (c == 0x1E9E) return 0x00DF;
  if ((c >= 0x1E00 && c <= 0x1E95) || (c >= 0x1EA0 && c <= 0x1EFF)) return lower_of_pair(c, false);
  return c;
}

std::string utf8_lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (int64_t at = 0; at < static_cast<int64_t>(text.size());) {
    const Utf8Char c = decode_utf8(text, at);
    if (c.valid) {
      append_utf8(out, unicode_lower(c.value));
    } else {
      out.push_back(text[static_cast<size_t>(at)]);
    }
    at += c.bytes;
  }
  return out;
}

std::string ascii_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return out;
}

std::string name_of_character(char32_t value) {
  char code[16];
  std::snprintf(code, sizeof code, "U+%04X", static_cast<unsigned>(value));
  if (is_unicode_space(value) || value < 32 || (value >= 0x7F && value < 0xA0)) return code;
  return "'" + utf8_of(value) + "' (" + code + ")";
}

}  // namespace qkv
