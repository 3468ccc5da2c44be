// What the terminal can show, and the escape sequences for it.
#pragma once

#include <string>

#include "qkv/view/color.h"

namespace qkv {

struct Terminal {
  int width = 80;
  bool tty = false;    // lines may be rewritten
  bool color = false;  // 24-bit
  bool utf8 = true;    // else plain ASCII
  bool dark = true;    // background
};

/// Looks at the file descriptor and at NO_COLOR, FORCE_COLOR, TERM, COLUMNS, COLORFGBG and the locale variables.
Terminal detect_terminal(int fd);

std::string foreground(Rgb color);
std::string background(Rgb color);
inline constexpr const char* kResetColor = "\x1b[0m";

}  // namespace qkv
