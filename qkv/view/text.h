// Text that comes from anywhere, made safe to show: valid UTF-8, visible blanks, known widths, escaped markup.
#pragma once

#include <string>
#include <string_view>

#include "qkv/figures/number.h"

namespace qkv {

/// Invalid bytes become U+FFFD; valid text is unchanged.
std::string valid_utf8(std::string_view text);
/// A token as a label: space ␣, newline ↵, tab ⇥, other control characters as their pictures, direction overrides
/// and invalid bytes as U+FFFD, the empty token as ∅. A space inside a longer token stays a space.
std::string visible_token(std::string_view token);
/// One '?' for every character that is not printable ASCII.
std::string ascii_text(std::string_view text);
/// Terminal columns of valid UTF-8: 2 for East Asian wide characters and emoji, 0 for combining marks.
int display_width(std::string_view text);
/// At most `columns` wide: a longer text keeps its two ends around "…".
std::string middle_ellipsis(std::string_view text, int columns);
/// Filled with spaces to `columns` (left-aligned, or right-aligned); wider text is returned unchanged.
std::string pad_right(std::string_view text, int columns);
std::string pad_left(std::string_view text, int columns);
/// `text` cut at spaces into lines of at most `width` columns, where words allow it; the first begins with `first`, the
/// others with `rest`, and each ends with a newline.
std::string wrapped(std::string_view text, int width, std::string_view first, std::string_view rest);
/// For HTML and SVG content and attributes: & < > " ' escaped; characters XML forbids become U+FFFD.
std::string escape_markup(std::string_view text);
/// With a capital first letter, where that is one of a to z.
std::string capitalised(std::string text);
/// One CSV field, quoted when it has to be.
std::string csv_field(std::string_view text);
/// One word of a shell's command, quoted when it has to be.
std::string shell_word(std::string_view text);

}  // namespace qkv
