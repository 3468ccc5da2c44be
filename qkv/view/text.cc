// Text handling: UTF-8, widths, escapes.
#include "qkv/view/text.h"

#include <locale.h>
#include <wchar.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "qkv/base/utf8.h"

namespace qkv {
namespace {

template <class Fn>
void for_each_char(std::string_view text, Fn&& fn) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text, static_cast<int64_t>(at));
    fn(c.value, text.substr(at, static_cast<size_t>(c.bytes)));
    at += static_cast<size_t>(c.bytes);
  }
}

// Characters that reorder the text around them.
bool is_direction_control(char32_t c) {
  return c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

// Columns as the C library has them, whatever the user's locale.
int char_width(char32_t c) {
  if (c < 0x20 || (c >= 0x7F && c < 0xA0)) return 0;
  if (c < 0x300) return 1;
  static const locale_t utf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (utf8 == nullptr) return 1;
  const locale_t before = ::uselocale(utf8);
  const int width = ::wcwidth(static_cast<wchar_t>(c));
  ::uselocale(before);
  return width < 0 ? 1 : width;
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  std::string out;
  for_each_char(text, [&](char32_t c, std::string_view bytes) {
    out += c == 0 || c == 0xFFFD ? std::string_view("\uFFFD") : bytes;
  });
  return out;
}

std::string visible_token(std::string_view token) {
  const std::string text = valid_utf8(token);
  if (text.empty()) return "∅";
  const bool only_spaces = text.find_first_not_of(' ') == std::string::npos;
  std::string out;
  for_each_char(text, [&](char32_t c, std::string_view bytes) {
    if (c == ' ' && only_spaces) {
      out += "␣";
    } else if (c == '\n') {
      out += "↵";
    } else if (c == '\t') {
      out += "⇥";
    } else if (c < 0x20) {
      append_utf8(out, 0x2400 + c);
    } else if (c == 0x7F) {
      out += "␡";
    } else if ((c > 0x7F && c < 0xA0) || is_direction_control(c) || c == 0x2028 || c == 0x2029) {
      out += "\uFFFD";
    } else {
      out += bytes;
    }
  });
  return out;
}

std::string ascii_text(std::string_view text) {
  const std::string valid = valid_utf8(text);
  std::string out;
  for_each_char(valid,
                [&](char32_t c, std::string_view) { out += c >= 0x20 && c < 0x7F ? static_cast<char>(c) : '?'; });
  return out;
}

int display_width(std::string_view text) {
  int width = 0;
  for_each_char(text, [&](char32_t c, std::string_view) { width += char_width(c); });
  return width;
}

std::string middle_ellipsis(std::string_view text, int columns) {
  if (display_width(text) <= columns) return std::string(text);
  if (columns <= 1) return columns == 1 ? "…" : "";
  struct Piece {
    std::string_view bytes;
    int width;
  };
  std::vector<Piece> pieces;
  for_each_char(text, [&](char32_t c, std::string_view bytes) { pieces.push_back({bytes, char_width(c)}); });
  const int right_room = (columns - 1) / 2, left_room = columns - 1 - right_room;
  std::string left, right;
  size_t i = 0, j = pieces.size();
  for (int used = 0; i < j && used + pieces[i].width <= left_room; ++i) {
    used += pieces[i].width;
    left += pieces[i].bytes;
  }
  for (int used = 0; j > i && used + pieces[j - 1].width <= right_room; --j) {
    used += pieces[j - 1].width;
    right.insert(0, pieces[j - 1].bytes);
  }
  return left + "…" + right;
}

std::string pad_right(std::string_view text, int columns) {
  return std::string(text) + std::string(static_cast<size_t>(std::max(0, columns - display_width(text))), ' ');
}

std::string pad_left(std::string_view text, int columns) {
  return std::string(static_cast<size_t>(std::max(0, columns - display_width(text))), ' ') + std::string(text);
}

std::string wrapped(std::string_view text, int width, std::string_view first, std::string_view rest) {
  std::string out, line(first);
  int used = display_width(first);
  bool empty = true;
  for (size_t at = 0; at < text.size();) {
    const size_t space = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, space - at);
    at = space + 1;
    const int needed = display_width(word);
    if (!empty && used + 1 + needed > width) {
      out += line + "\n";
      line = rest;
      used = display_width(rest);
      empty = true;
    }
    (line += empty ? "" : " ") += word;
    used += needed + (empty ? 0 : 1);
    empty = false;
  }
  return out + line + "\n";
}

std::string escape_markup(std::string_view text) {
  const std::string valid = valid_utf8(text);
  std::string out;
  out.reserve(valid.size());
  for_each_char(valid, [&](char32_t c, std::string_view bytes) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        if ((c < 0x20 && c != '\n' && c != '\t') || c == 0xFFFE || c == 0xFFFF) {
          out += "\uFFFD";
        } else {
          out += bytes;
        }
    }
  });
  return out;
}

std::string capitalised(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos &&
      (text.empty() || (text.front() != ' ' && text.back() != ' '))) {
    return std::string(text);
  }
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

std::string shell_word(std::string_view text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("._,/+-:@%=").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace qkv
