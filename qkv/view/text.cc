// Text handling on glib's Unicode tables (glib comes with pango).
#include "qkv/view/text.h"

#include <glib.h>

#include <algorithm>
#include <vector>

namespace qkv {
namespace {

std::string from_glib(gchar* text) {
  std::string out(text);
  g_free(text);
  return out;
}

void append(std::string& out, gunichar c) {
  char buffer[6];
  out.append(buffer, static_cast<size_t>(g_unichar_to_utf8(c, buffer)));
}

template <class Fn>
void for_each_char(std::string_view valid, Fn&& fn) {
  const char* p = valid.data();
  const char* const end = p + valid.size();
  while (p < end) {
    const char* const next = g_utf8_next_char(p);
    fn(g_utf8_get_char(p), std::string_view(p, static_cast<size_t>(next - p)));
    p = next;
  }
}

// Characters that reorder what stands around them.
bool is_direction_control(gunichar c) {
  return c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

int char_width(gunichar c) {
  if (c < 0x20 || (c >= 0x7F && c < 0xA0)) return 0;
  if (g_unichar_iszerowidth(c)) return 0;
  return g_unichar_iswide(c) ? 2 : 1;
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  return from_glib(g_utf8_make_valid(text.data(), static_cast<gssize>(text.size())));
}

std::string visible_token(std::string_view token) {
  const std::string text = valid_utf8(token);
  if (text.empty()) return "∅";
  const bool only_spaces = text.find_first_not_of(' ') == std::string::npos;
  std::string out;
  for_each_char(text, [&](gunichar c, std::string_view bytes) {
    if (c == ' ' && only_spaces) {
      out += "␣";
    } else if (c == '\n') {
      out += "↵";
    } else if (c == '\t') {
      out += "⇥";
    } else if (c < 0x20) {
      append(out, 0x2400 + c);
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
                [&](gunichar c, std::string_view) { out += c >= 0x20 && c < 0x7F ? static_cast<char>(c) : '?'; });
  return out;
}

int display_width(std::string_view text) {
  int width = 0;
  for_each_char(text, [&](gunichar c, std::string_view) { width += char_width(c); });
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
  for_each_char(text, [&](gunichar c, std::string_view bytes) { pieces.push_back({bytes, char_width(c)}); });
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

std::string escape_markup(std::string_view text) {
  const std::string valid = valid_utf8(text);
  std::string out;
  out.reserve(valid.size());
  for_each_char(valid, [&](gunichar c, std::string_view bytes) {
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

}  // namespace qkv
