// How an error ends the program: one line and an exit code.
#pragma once

#include <exception>

namespace qkv::app {

/// "qkv: …" on standard error, one line of at most some 1,000 bytes whatever the text holds. Takes no memory: there may
/// be none left.
void print_error(const char* what);
void print_error(const std::exception& error);
/// 2 for wrong usage, 1 for everything else.
int error_code(const std::exception& error);

}  // namespace qkv::app
