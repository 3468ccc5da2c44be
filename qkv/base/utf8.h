// UTF-8: decoding, checking, cutting into characters, and the few Unicode facts that tokenizers need.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

/// One decoded character: its value and how many bytes it took. Where the bytes are not UTF-8, value is U+FFFD,
/// bytes is 1 and valid is false.
struct Utf8Char {
  char32_t value = 0;
  int64_t bytes = 1;
  bool valid = true;
};

/// The character that begins at byte `at` < text.size(). Overlong forms, surrogates and values above U+10FFFF are
/// not valid.
Utf8Char decode_utf8(std::string_view text, int64_t at);
void append_utf8(std::string& out, char32_t value);
std::string utf8_of(char32_t value);

/// Byte position of the first invalid byte, or -1 when the whole text is UTF-8.
int64_t first_invalid_utf8(std::string_view text);
/// The text as views of one character each; an invalid byte is a view of that byte.
std::vector<std::string_view> utf8_characters(std::string_view text);
/// The text as code points; an invalid byte is U+FFFD.
std::u32string utf8_to_code_points(std::string_view text);

/// White space as Unicode (and Python's str.split) has it: ASCII controls 9-13 and 28-31, space, U+0085, U+00A0,
/// U+1680, U+2000-200A, U+2028, U+2029, U+202F, U+205F, U+3000.
bool is_unicode_space(char32_t value);
/// Words between Unicode white space; never an empty one.
std::vector<std::string_view> split_words(std::string_view text);

/// Letters of Latin (to U+017F, U+1E00-1EFF and the living languages' part of what lies between), modern Greek,
/// Cyrillic and Armenian to lower case; the rest unchanged.
char32_t unicode_lower(char32_t value);
std::string utf8_lower(std::string_view text);
/// A to Z alone to lower case: names of options, hosts and headers.
std::string ascii_lower(std::string_view text);
/// How a message names a character: 'é' (U+00E9), or U+000A for one that does not print.
std::string name_of_character(char32_t value);

}  // namespace qkv
