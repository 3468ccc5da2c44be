// Heat maps in the terminal: one line per row while they fit, half-blocks with pooling when they do not.
#include <algorithm>
#include <cmath>

#include "qkv/view/heatmap.h"
#include "qkv/view/text.h"

namespace qkv {
namespace {

constexpr int kMaxLabel = 16;      // columns of a row label
constexpr int kMaxHeading = 8;     // lines of a column label written downwards
constexpr int64_t kMaxLines = 64;  // rows drawn one to a line
constexpr Rgb kHatchInk{0x80, 0x86, 0x92};

struct Style {
  const Terminal& terminal;
  const ColorMap& colors;
};

// Characters of valid UTF-8, each with the marks that combine with it.
std::vector<std::string> split_characters(const std::string& text) {
  std::vector<std::string> out;
  for (size_t i = 0; i < text.size();) {
    size_t n = 1;
    while (i + n < text.size() && (static_cast<unsigned char>(text[i + n]) & 0xC0) == 0x80) ++n;
    const std::string piece = text.substr(i, n);
    if (!out.empty() && display_width(piece) == 0) {
      out.back() += piece;
    } else {
      out.push_back(piece);
    }
    i += n;
  }
  return out;
}

std::string token_label(const std::vector<std::string>& labels, int64_t i, const Terminal& terminal) {
  std::string text = labels.empty() ? std::to_string(i) : visible_token(labels[static_cast<size_t>(i)]);
  if (!terminal.utf8) {
    const std::string ascii = ascii_text(text);
    text = ascii.size() <= kMaxLabel ? ascii : ascii.substr(0, kMaxLabel - 2) + "..";
    return text;
  }
  return middle_ellipsis(text, kMaxLabel);
}

std::string repeat(std::string_view piece, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += piece;
  return out;
}

// One cell `width` columns wide.
std::string cell_text(std::optional<double> shade, int width, const Style& style) {
  const Terminal& t = style.terminal;
  if (!shade) {
    const std::string mark = repeat(t.utf8 ? "╱" : "/", width);
    return t.color ? foreground(kHatchInk) + mark + kResetColor : mark;
  }
  if (t.color)
    return background(color_at(style.colors, *shade)) + std::string(static_cast<size_t>(width), ' ') + kResetColor;
  static constexpr std::string_view kBlocks[] = {" ", "░", "▒", "▓", "█"};
  static constexpr std::string_view kAscii[] = {" ", ".", "+", "*", "#"};
  // Any weight that would round to nothing but is not zero still shows.
  const int level = *shade <= 0.02 ? 0 : std::clamp(static_cast<int>(std::ceil(*shade * 4)), 1, 4);
  return repeat((t.utf8 ? kBlocks : kAscii)[level], width);
}

// "0 ▏colours▕ 1  weight", the key to the picture.
std::string legend(const HeatMap& map, const Style& style, int indent) {
  const Shades shades(map);
  const bool by_row = map.scale == MapScale::kRow && !map.range;
  std::string line(static_cast<size_t>(indent), ' ');
  line += by_row ? "0" : format_number(shades.low(), 3);
  line += ' ';
  const int steps = style.terminal.color ? 16 : 5;
  for (int i = 0; i < steps; ++i) line += cell_text(static_cast<double>(i) / (steps - 1), 1, style);
  line += ' ' + (by_row ? "row's largest" : format_number(shades.high(), 3)) + "  " + valid_utf8(map.value_title);
  if (std::any_of(map.hidden.begin(), map.hidden.end(), [](uint8_t h) { return h != 0; })) {
    line += "   " + cell_text(std::nullopt, 2, style) + " masked";
  }
  return line + "\n";
}

// Column labels above the cells: on one line when they fit, else written downwards and ending at the cells.
std::string headings(const HeatMap& map, const Terminal& terminal, int indent, int cell) {
  std::vector<std::vector<std::string>> letters;
  bool flat = true;
  size_t lines = 1;
  for (int64_t c = 0; c < map.columns; ++c) {
    const std::string label = middle_ellipsis(token_label(map.column_labels, c, terminal), 2 * kMaxHeading);
    flat = flat && display_width(label) <= cell;
    letters.push_back(split_characters(label));
    if (letters.back().size() > kMaxHeading) {
      letters.back().resize(kMaxHeading - 1);
      letters.back().push_back(terminal.utf8 ? "⋮" : ":");
    }
    lines = std::max(lines, letters.back().size());
  }
  if (flat) lines = 1;
  std::string out;
  for (size_t line = 0; line < lines; ++line) {
    std::string row(static_cast<size_t>(indent), ' ');
    for (const auto& label : letters) {
      std::string piece;
      if (flat) {
        for (const std::string& letter : label) piece += letter;
      } else if (const size_t skip = lines - label.size(); line >= skip) {
        piece = label[line - skip];
      }
      // A wide character does not fit a narrow cell.
      if (display_width(piece) > cell) piece = "·";
      row += pad_right(piece, cell);
    }
    row.erase(row.find_last_not_of(' ') + 1);
    out += row + "\n";
  }
  return out;
}

int label_width(const HeatMap& map, const Terminal& terminal) {
  int width = 1;
  for (int64_t r = 0; r < map.rows; ++r)
    width = std::max(width, display_width(token_label(map.row_labels, r, terminal)));
  return width;
}

std::string draw_rows(const HeatMap& map, const Style& style, int labels, int cell) {
  const Shades shades(map);
  std::string out = headings(map, style.terminal, labels + 1, cell);
  for (int64_t r = 0; r < map.rows; ++r) {
    out += pad_left(token_label(map.row_labels, r, style.terminal), labels) + " ";
    for (int64_t c = 0; c < map.columns; ++c) out += cell_text(shades.at(r, c), cell, style);
    out += "\n";
  }
  return out;
}

// The strongest shade of one pooled cell.
std::optional<double> strongest(const HeatMap& map, const Shades& shades, int64_t row, int64_t column, int64_t pool) {
  std::optional<double> best;
  const double middle = map.scale == MapScale::kCentered ? 0.5 : 0;
  for (int64_t r = row * pool; r < std::min(map.rows, (row + 1) * pool); ++r) {
    for (int64_t c = column * pool; c < std::min(map.columns, (column + 1) * pool); ++c) {
      const std::optional<double> shade = shades.at(r, c);
      if (shade && (!best || std::abs(*shade - middle) > std::abs(*best - middle))) best = shade;
    }
  }
  return best;
}

// Two pooled rows per line: the upper one is the half block's ink, the lower one its ground.
std::string draw_dense(const HeatMap& map, const Style& style, int labels) {
  const Shades shades(map);
  const Terminal& t = style.terminal;
  const int64_t room = std::max<int64_t>(1, t.width - labels - 1);
  const int64_t pool = std::max((map.columns + room - 1) / room, (map.rows + 2 * kMaxLines - 1) / (2 * kMaxLines));
  const int64_t rows = (map.rows + pool - 1) / pool, columns = (map.columns + pool - 1) / pool;
  const bool halves = t.color && t.utf8;
  std::string out;
  for (int64_t r = 0; r < rows; r += halves ? 2 : 1) {
    out += pad_left(token_label(map.row_labels, r * pool, t), labels) + " ";
    for (int64_t c = 0; c < columns; ++c) {
      const std::optional<double> upper = strongest(map, shades, r, c, pool);
      if (!halves) {
        out += cell_text(upper, 1, style);
        continue;
      }
      const Rgb hidden{0x60, 0x64, 0x6c};
      const std::optional<double> lower = r + 1 < rows ? strongest(map, shades, r + 1, c, pool) : upper;
      out += foreground(upper ? color_at(style.colors, *upper) : hidden) +
             background(lower ? color_at(style.colors, *lower) : hidden) + "▀";
    }
    out += halves ? std::string(kResetColor) + "\n" : "\n";
  }
  if (pool > 1) {
    out += std::string(static_cast<size_t>(labels + 1), ' ') + "each dot is the largest of " + std::to_string(pool) +
           " x " + std::to_string(pool) + " cells\n";
  }
  return out;
}

}  // namespace

std::string terminal_heatmap(const HeatMap& map, const Terminal& terminal) {
  check_map(map);
  const ColorMap& colors = map.scale == MapScale::kCentered ? diverging_map()
                           : terminal.dark                  ? dark_map()
                                                            : sequential_map();
  const Style style{terminal, colors};
  const int labels = label_width(map, terminal);
  const auto fits = [&](int64_t cell) { return labels + 1 + map.columns * cell <= terminal.width; };
  const auto shown = [&](const std::string& text) { return terminal.utf8 ? valid_utf8(text) : ascii_text(text); };
  std::string out;
  if (!map.title.empty()) out += shown(map.title) + "\n";
  out += shown(map.row_title) + (terminal.utf8 ? " ↓  " : " (down)  ") + shown(map.column_title) +
         (terminal.utf8 ? " →" : " (across)") + "\n";
  if (map.rows <= kMaxLines && fits(1)) {
    out += draw_rows(map, style, labels, fits(2) ? 2 : 1);
  } else {
    out += draw_dense(map, style, labels);
  }
  out += legend(map, style, labels + 1);
  if (!map.caption.empty()) out += shown(map.caption) + "\n";
  return out;
}

}  // namespace qkv
