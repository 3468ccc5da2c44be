// Terminal detection.
#include "qkv/view/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace qkv {
namespace {

std::string_view env(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// An unset locale says nothing (containers); only an explicit other encoding rules UTF-8 out.
bool locale_allows_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view value = env(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string_view::npos || value.find("utf8") != std::string_view::npos ||
           value.find("utf-8") != std::string_view::npos;
  }
  return true;
}

std::string color_code(int kind, Rgb c) {
  return "\x1b[" + std::to_string(kind) + ";2;" + std::to_string(c.r) + ";" + std::to_string(c.g) + ";" +
         std::to_string(c.b) + "m";
}

}  // namespace

Terminal detect_terminal(int fd) {
  Terminal terminal;
  terminal.tty = ::isatty(fd) == 1;
  const bool forced = !env("FORCE_COLOR").empty() && env("FORCE_COLOR") != "0";
  terminal.color = env("NO_COLOR").empty() && (forced || (terminal.tty && env("TERM") != "dumb"));
  terminal.utf8 = locale_allows_utf8();
  winsize size{};
  if (terminal.tty && ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    terminal.width = size.ws_col;
  } else if (const int columns = std::atoi(std::string(env("COLUMNS")).c_str()); columns > 0) {
    terminal.width = columns;
  }
  terminal.width = std::clamp(terminal.width, 20, 500);
  // "foreground;background": 7 and 15 are light backgrounds.
  const std::string_view colors = env("COLORFGBG");
  terminal.dark = !(colors.ends_with(";7") || colors.ends_with(";15"));
  return terminal;
}

std::string foreground(Rgb color) { return color_code(38, color); }
std::string background(Rgb color) { return color_code(48, color); }

}  // namespace qkv
