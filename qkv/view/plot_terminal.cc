// Charts in the terminal: braille dots (2 x 4 to a character) in colour, letters without.
#include <algorithm>
#include <cmath>
#include <utility>

#include "qkv/view/plot.h"
#include "qkv/view/plot_frame.h"
#include "qkv/view/text.h"

namespace qkv {
namespace {

using detail::AxisScale;
using detail::Tick;

constexpr int kDotsX = 2, kDotsY = 4;
constexpr char kLetters[] = "*+ox#@%&";

std::string series_ink(int series, const Terminal& terminal) {
  return foreground(terminal.dark ? series_color_dark(series) : series_color(series));
}

// A raster of characters; each holds braille dots and the last series that touched it.
class DotGrid {
 public:
  DotGrid(int columns, int rows) : columns_(columns), rows_(rows), cells_(static_cast<size_t>(columns * rows)) {}

  int width() const { return columns_ * kDotsX; }
  int height() const { return rows_ * kDotsY; }

  void dot(int x, int y, int series) {
    if (x < 0 || y < 0 || x >= width() || y >= height()) return;
    static constexpr int kBits[kDotsY][kDotsX] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    Cell& cell = cells_[size_t(y / kDotsY) * size_t(columns_) + size_t(x / kDotsX)];
    cell.dots |= kBits[y % kDotsY][x % kDotsX];
    cell.series = series;
  }
  void line(Point a, Point b, int series) {
    const int steps = static_cast<int>(std::ceil(std::max({std::abs(b.x - a.x), std::abs(b.y - a.y), 1.0})));
    for (int i = 0; i <= steps; ++i) {
      const double t = static_cast<double>(i) / steps;
      dot(static_cast<int>(std::lround(a.x + (b.x - a.x) * t)), static_cast<int>(std::lround(a.y + (b.y - a.y) * t)),
          series);
    }
  }
  std::string row(int y, const Terminal& terminal) const {
    const bool braille = terminal.color && terminal.utf8;
    std::string out;
    int inked = -1, blanks = 0;  // blanks are written only when something follows
    for (int x = 0; x < columns_; ++x) {
      const Cell& cell = cells_[size_t(y) * size_t(columns_) + size_t(x)];
      if (cell.dots == 0) {
        ++blanks;
        continue;
      }
      out.append(static_cast<size_t>(std::exchange(blanks, 0)), ' ');
      if (!braille) {
        out += kLetters[cell.series % 8];
        continue;
      }
      if (std::exchange(inked, cell.series) != cell.series) out += series_ink(cell.series, terminal);
      const int code = 0x2800 + cell.dots;
      out += {static_cast<char>(0xE0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 63)),
              static_cast<char>(0x80 | (code & 63))};
    }
    return inked >= 0 ? out + kResetColor : out;
  }

 private:
  struct Cell {
    int dots = 0, series = 0;
  };

  int columns_, rows_;
  std::vector<Cell> cells_;
};

AxisScale scale_of(const Plot& plot, bool vertical) {
  std::vector<double> values;
  for (const Series& s : plot.series) {
    const std::vector<double>& v = vertical ? s.y : s.x;
    values.insert(values.end(), v.begin(), v.end());
  }
  return detail::fit_axis(vertical ? plot.y : plot.x, values, vertical);
}

void draw_series(DotGrid& grid, const Series& s, int index, const AxisScale& x, const AxisScale& y) {
  bool joined = false;
  Point last;
  for (size_t i = 0; i < std::min(s.x.size(), s.y.size()); ++i) {
    if (!x.shows(s.x[i]) || !y.shows(s.y[i])) {
      joined = false;
      continue;
    }
    const Point at{x(s.x[i]), y(s.y[i])};
    if (joined && s.marks != Marks::kDots) {
      grid.line(last, at, index);
    } else {
      grid.dot(static_cast<int>(std::lround(at.x)), static_cast<int>(std::lround(at.y)), index);
    }
    joined = true;
    last = at;
  }
}

std::string legend(const Plot& plot, const Terminal& terminal) {
  std::string out, line;
  int width = 0;
  for (size_t i = 0; i < plot.series.size(); ++i) {
    const Series& s = plot.series[i];
    if (s.name.empty()) continue;
    const int color = s.color >= 0 ? s.color : static_cast<int>(i);
    const std::string name = terminal.utf8 ? visible_token(s.name) : ascii_text(s.name);
    const int entry = display_width(name) + 3;
    if (width > 0 && width + 3 + entry > terminal.width) {
      out += std::exchange(line, "") + "\n";
      width = 0;
    }
    if (width > 0) line += "   ";
    width += entry + (width > 0 ? 3 : 0);
    const bool lines = terminal.color && terminal.utf8;
    line += lines ? series_ink(color, terminal) + "──" + kResetColor : std::string(2, kLetters[color % 8]);
    line += " " + name;
  }
  return line.empty() ? out : out + line + "\n";
}

// Tick labels under the axis, each centred at its place and skipped where it would touch the one before.
std::string x_labels(const std::vector<Tick>& ticks, const AxisScale& x, int columns) {
  std::string line;
  for (const Tick& tick : ticks) {
    const int width = display_width(tick.label);
    const int at = std::clamp(static_cast<int>(x(tick.value)) / kDotsX - width / 2, 0, std::max(0, columns - width));
    const int used = display_width(line);
    if (used > 0 && at <= used) continue;
    line += std::string(static_cast<size_t>(at - used), ' ') + tick.label;
  }
  return line;
}

}  // namespace

std::string terminal_plot(const Plot& plot, const Terminal& terminal, int rows) {
  rows = std::clamp(rows, 2, 200);
  AxisScale x = scale_of(plot, false), y = scale_of(plot, true);
  const std::vector<Tick> y_ticks = ticks_of(y, plot.y, std::max(2, rows / 3));
  int labels = 1;
  for (const Tick& tick : y_ticks) labels = std::max(labels, display_width(tick.label));
  const int columns = std::max(8, std::min(terminal.width, 120) - labels - 2);
  DotGrid grid(columns, rows);
  x.to = grid.width() - 1;
  y.from = grid.height() - 1;
  y.to = 0;
  const auto shown = [&](const std::string& text) { return terminal.utf8 ? valid_utf8(text) : ascii_text(text); };
  const bool all_faint = std::all_of(plot.series.begin(), plot.series.end(), [](const Series& s) { return s.faint; });
  for (size_t i = 0; i < plot.series.size(); ++i) {
    const Series& s = plot.series[i];
    // Raw values behind a smoothed line would only be noise at this resolution.
    if (s.faint && !all_faint) continue;
    draw_series(grid, s, s.color >= 0 ? s.color : static_cast<int>(i), x, y);
  }
  std::vector<std::string> margin(static_cast<size_t>(rows));
  for (const Tick& tick : y_ticks)
    margin[static_cast<size_t>(std::clamp(static_cast<int>(y(tick.value)) / kDotsY, 0, rows - 1))] = tick.label;
  std::string out = plot.title.empty() ? "" : shown(plot.title) + "\n";
  out += legend(plot, terminal);
  if (!plot.y.title.empty()) out += shown(plot.y.title) + "\n";
  for (int r = 0; r < rows; ++r) {
    const std::string& label = margin[static_cast<size_t>(r)];
    const char* const edge = !terminal.utf8 ? "|" : label.empty() ? "│" : "┤";
    out += pad_left(label, labels) + " " + edge + grid.row(r, terminal) + "\n";
  }
  const std::string indent(static_cast<size_t>(labels + 1), ' ');
  out += indent + (terminal.utf8 ? "└" : "+");
  for (int c = 0; c < columns; ++c) out += terminal.utf8 ? "─" : "-";
  out += "\n" + indent + " " + x_labels(ticks_of(x, plot.x, std::max(2, columns / 12)), x, columns) + "\n";
  if (!plot.x.title.empty()) {
    const int at = std::max(0, labels + 2 + (columns - display_width(shown(plot.x.title))) / 2);
    out += std::string(static_cast<size_t>(at), ' ') + shown(plot.x.title) + "\n";
  }
  return out;
}

}  // namespace qkv
