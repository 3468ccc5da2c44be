// Errors as lines and exit codes.
#include "qkv/app/errors.h"

#include <algorithm>
#include <cstdio>
#include <new>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "qkv/base/error.h"
#include "qkv/base/utf8.h"

namespace qkv::app {
namespace {

/// Controls, and marks that turn the direction of what follows.
bool steers_terminal(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) ||
         c == 0x2028 || c == 0x2029;
}

}  // namespace

void print_error(const char* what) {
  constexpr size_t kBegin = 700, kEnd = 300;  // bytes of a longer text that are shown: the rest is one name or value
  const std::string_view text = what;
  const size_t end = text.size() - std::min(text.size(), kEnd);
  std::fflush(stdout);
  std::fputs("qkv: ", stderr);
  for (size_t at = 0; at < text.size();) {
    if (at >= kBegin && at < end) {
      std::fputs("... ", stderr);
      for (at = end; at < text.size() && (text[at] & 0xC0) == 0x80; ++at) continue;  // not within a character
    }
    // A file name may hold anything.
    const Utf8Char c = decode_utf8(text, static_cast<int64_t>(at));
    const auto bytes = static_cast<size_t>(c.bytes);
    if (!c.valid || steers_terminal(c.value)) {
      std::fputc('?', stderr);
    } else {
      std::fwrite(text.data() + at, 1, bytes, stderr);
    }
    at += bytes;
  }
  std::fputc('\n', stderr);
}

void print_error(const std::exception& error) {
  // A length_error: more elements than any memory holds.
  const bool memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
                      dynamic_cast<const std::length_error*>(&error) != nullptr;
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  const bool threads = system != nullptr && system->code() == std::errc::resource_unavailable_try_again;
  print_error(memory    ? kOutOfMemory
              : threads ? "the system gives no more threads; end other programs or raise the limit"
                        : error.what());
}

int error_code(const std::exception& error) { return dynamic_cast<const ConfigError*>(&error) != nullptr ? 2 : 1; }

}  // namespace qkv::app
