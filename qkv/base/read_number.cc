// std::from_chars for doubles, and what stands in for it in libraries that lack it (LLVM's before version 20).
#include "qkv/base/read_number.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>

namespace qkv {

#if defined(__cpp_lib_to_chars)

const char* read_number(const char* first, const char* last, double& value) {
  const auto [end, error] = std::from_chars(first, last, value);
  return error == std::errc() ? end : first;
}

#else

const char* read_number(const char* first, const char* last, double& value) {
  const std::string_view all(first, static_cast<size_t>(last - first));
  // Only what a decimal number is made of: strtod would take hexadecimal ones, words and spaces too.
  const std::string text(all.substr(0, all.find_first_not_of("0123456789.eE+-")));
  if (text.empty() || text[0] == '+') return first;
  char* end = nullptr;
  const double read = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !std::isfinite(read)) return first;
  value = read;
  return first + (end - text.c_str());
}

#endif

}  // namespace qkv
