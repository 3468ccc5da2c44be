// Measuring and aligning tables.
#include "qkv/view/table.h"

#include <algorithm>
#include <numeric>

#include "qkv/view/text.h"

namespace qkv {
namespace {

constexpr int kGap = 2;
constexpr int kLeastWidth = 6;

size_t columns_of(const Table& table) {
  size_t columns = table.header.size();
  for (const auto& row : table.rows) columns = std::max(columns, row.size());
  return columns;
}

const std::string& cell(const std::vector<std::string>& row, size_t column) {
  static const std::string kNone;
  return column < row.size() ? row[column] : kNone;
}

std::vector<bool> numeric_columns(const Table& table) {
  std::vector<bool> numeric(columns_of(table));
  for (size_t c = 0; c < numeric.size(); ++c) {
    bool any = false, all = true;
    for (const auto& row : table.rows) {
      if (cell(row, c).empty()) continue;
      any = true;
      all = all && looks_numeric(cell(row, c));
    }
    numeric[c] = any && all;
  }
  return numeric;
}

// One line, nothing that steers the terminal.
std::string shown(const std::string& text, const Terminal& terminal) {
  if (text.empty()) return "";
  const std::string visible = visible_token(text);
  return terminal.utf8 ? visible : ascii_text(visible);
}

int longest_word(const std::string& text) {
  int longest = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    longest = std::max(longest, display_width(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return longest;
}

// Broken at spaces; only a word that is wider than the column alone is cut.
std::vector<std::string> wrapped_cell(const std::string& text, int width, bool utf8) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    std::string word = text.substr(begin, end - begin);
    if (display_width(word) > width) {
      word = utf8 ? middle_ellipsis(word, width) : word.substr(0, static_cast<size_t>(width - 2)) + "..";
    }
    if (!lines.empty() && display_width(lines.back()) + 1 + display_width(word) <= width) {
      lines.back() += " " + word;
    } else {
      lines.push_back(word);
    }
    begin = end + 1;
  }
  return lines;
}

std::vector<int> fit_widths(const Table& table, const Terminal& terminal, const std::vector<bool>& numeric,
                            TableWords whole) {
  std::vector<int> widths(numeric.size()), words(numeric.size(), kLeastWidth);
  for (size_t c = 0; c < widths.size(); ++c) {
    const auto measure = [&](const std::string& text) {
      widths[c] = std::max(widths[c], display_width(text));
      words[c] = std::max(words[c], longest_word(text));
    };
    measure(shown(cell(table.header, c), terminal));
    for (const auto& row : table.rows) measure(shown(cell(row, c), terminal));
  }
  const auto total = [&] {
    return std::accumulate(widths.begin(), widths.end(), 0) + kGap * (static_cast<int>(widths.size()) - 1);
  };
  // First down to the longest word, which costs lines; then into the words. Numbers are never cut.
  for (const bool cut_words : {false, true}) {
    if (cut_words && whole == TableWords::whole) break;
    while (total() > terminal.width) {
      auto widest = widths.end();
      for (auto it = widths.begin(); it != widths.end(); ++it) {
        const auto c = static_cast<size_t>(it - widths.begin());
        const int least = cut_words ? kLeastWidth : words[c];
        if (!numeric[c] && *it > least && (widest == widths.end() || *it > *widest)) widest = it;
      }
      if (widest == widths.end()) break;
      --*widest;
    }
  }
  return widths;
}

}  // namespace

bool looks_numeric(const std::string& text) {
  if (text == "—" || text == "-" || text == "nan" || text == "inf" || text == "-inf") return true;
  size_t digits = 0, letters = 0;
  for (const char c : text) {
    digits += c >= '0' && c <= '9' ? 1 : 0;
    letters += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ? 1 : 0;
  }
  if (digits == 0 || letters > 3) return false;
  // A number begins as one: digits, a sign or a comparison.
  for (const std::string_view start : {"±", "≥", "≤", "≈", "<", ">", "+", "-", "−", "~", "×", "."}) {
    if (text.starts_with(start)) return true;
  }
  return text[0] >= '0' && text[0] <= '9';
}

std::string terminal_table(const Table& table, const Terminal& terminal, TableWords words) {
  const std::vector<bool> numeric = numeric_columns(table);
  const std::vector<int> widths = fit_widths(table, terminal, numeric, words);
  const auto line = [&](const std::vector<std::string>& row) {
    std::vector<std::vector<std::string>> cells;
    size_t height = 1;
    for (size_t c = 0; c < widths.size(); ++c) {
      const std::string text = shown(cell(row, c), terminal);
      const bool fits = numeric[c] || display_width(text) <= widths[c];
      cells.push_back(fits ? std::vector<std::string>{text} : wrapped_cell(text, widths[c], terminal.utf8));
      height = std::max(height, cells.back().size());
    }
    std::string lines;
    for (size_t y = 0; y < height; ++y) {
      std::string out;
      for (size_t c = 0; c < widths.size(); ++c) {
        const std::string& text = cell(cells[c], y);
        if (c > 0) out += std::string(kGap, ' ');
        out += numeric[c] ? pad_left(text, widths[c]) : pad_right(text, widths[c]);
      }
      out.erase(out.find_last_not_of(' ') + 1);
      lines += out + "\n";
    }
    return lines;
  };
  std::string out = table.title.empty() ? "" : shown(table.title, terminal) + "\n";
  if (!table.header.empty()) {
    out += line(table.header);
    for (size_t c = 0; c < widths.size(); ++c) {
      if (c > 0) out += std::string(kGap, ' ');
      for (int i = 0; i < widths[c]; ++i) out += terminal.utf8 ? "─" : "-";
    }
    out += "\n";
  }
  for (const auto& row : table.rows) out += line(row);
  return out;
}

std::string html_table(const Table& table) {
  const std::vector<bool> numeric = numeric_columns(table);
  const auto row_html = [&](const std::vector<std::string>& row, const char* tag) {
    std::string out = "<tr>";
    for (size_t c = 0; c < numeric.size(); ++c) {
      out += std::string("<") + tag + (numeric[c] ? " class=\"num\">" : ">") + escape_markup(cell(row, c)) + "</" +
             tag + ">";
    }
    return out + "</tr>\n";
  };
  std::string out = "<table>\n";
  if (!table.title.empty()) out += "<caption>" + escape_markup(table.title) + "</caption>\n";
  if (!table.header.empty()) out += "<thead>" + row_html(table.header, "th") + "</thead>\n";
  out += "<tbody>\n";
  for (const auto& row : table.rows) out += row_html(row, "td");
  return out + "</tbody>\n</table>\n";
}

}  // namespace qkv
