// Errors as lines and exit codes.
#include "qkv/app/errors.h"

#include <cstdio>
#include <new>
#include <stdexcept>
#include <system_error>

#include "qkv/base/error.h"

namespace qkv::app {

void print_error(const char* what) {
  std::fflush(stdout);
  std::fputs("qkv: ", stderr);
  // A file name may hold anything.
  for (; *what != '\0'; ++what) {
    const auto c = static_cast<unsigned char>(*what);
    std::fputc(c < ' ' || c == 127 ? '?' : c, stderr);
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
