// Progress lines.
#include "qkv/view/progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>

#include "qkv/view/text.h"

namespace qkv {
namespace {

constexpr int kBarWidth = 24;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void write_to_stderr(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
    if (n <= 0) return;  // progress is not worth an error
    text.remove_prefix(static_cast<size_t>(n));
  }
}

std::string bar(double share, bool utf8) {
  if (!utf8) {
    const int full = static_cast<int>(share * kBarWidth);
    return "[" + std::string(static_cast<size_t>(full), '#') + std::string(static_cast<size_t>(kBarWidth - full), '.') +
           "]";
  }
  static const char* const kParts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = static_cast<int>(share * kBarWidth * 8);
  std::string out;
  for (int i = 0; i < eighths / 8; ++i) out += "█";
  out += kParts[eighths % 8];
  return pad_right(out, kBarWidth);
}

}  // namespace

Progress::Progress(std::string label, int64_t total, ProgressOptions options)
    : label_(std::move(label)), total_(total), options_(std::move(options)) {
  if (!options_.now) options_.now = &steady_seconds;
  if (!options_.write) options_.write = &write_to_stderr;
  start_ = options_.now();
}

Progress::Progress(std::string label, int64_t total, std::string unit)
    : Progress(std::move(label), total,
               ProgressOptions{.terminal = detect_terminal(STDERR_FILENO), .unit = std::move(unit)}) {}

Progress::~Progress() { finish(); }

void Progress::start_at(int64_t done) { first_ = done; }

std::string Progress::line(int64_t done, std::string_view note, double elapsed) const {
  const bool utf8 = options_.terminal.utf8;
  const double rate = elapsed > 0 ? static_cast<double>(done - first_) / elapsed : 0;
  std::string out = utf8 ? valid_utf8(label_) : ascii_text(label_);
  if (total_ > 0) {
    const double share = std::clamp(static_cast<double>(done) / static_cast<double>(total_), 0.0, 1.0);
    char percent[8];
    std::snprintf(percent, sizeof(percent), "%3d%%", static_cast<int>(share * 100));
    out += "  " + (options_.terminal.tty ? bar(share, utf8) + " " : std::string()) + percent;
  } else {
    out += "  " + format_count(static_cast<double>(done));
  }
  if (!options_.unit.empty() && rate > 0) out += "  " + format_count(rate) + " " + options_.unit + "/s";
  if (total_ > 0 && rate > 0)
    out += "  " + format_duration(static_cast<double>(std::max<int64_t>(0, total_ - done)) / rate) + " left";
  if (!note.empty()) out += "  " + (utf8 ? valid_utf8(note) : ascii_text(note));
  return out;
}

void Progress::update(int64_t done, std::string_view note) {
  const double elapsed = options_.now() - start_;
  if (elapsed < options_.quiet_seconds) return;
  const double pause = options_.terminal.tty ? options_.redraw_seconds : options_.line_seconds;
  if (last_ >= 0 && elapsed - last_ < pause) return;
  last_ = elapsed;
  std::string text = line(done, note, elapsed);
  if (!options_.terminal.tty) return options_.write(text + "\n");
  // A line longer than the terminal would wrap and could not be rewritten: first the note's last parts go, which are
  // two spaces apart, then the note.
  const auto too_wide = [&] { return display_width(text) >= options_.terminal.width; };
  for (std::string_view rest = note; too_wide() && !rest.empty();) {
    rest = rest.substr(0, rest.rfind("  ") == std::string_view::npos ? 0 : rest.rfind("  "));
    text = line(done, rest, elapsed);
  }
  if (too_wide()) text = middle_ellipsis(text, options_.terminal.width - 1);
  options_.write("\r" + text + "\x1b[K");
  visible_ = true;
}

void Progress::clear() {
  if (std::exchange(visible_, false)) options_.write("\r\x1b[K");
  if (options_.terminal.tty) last_ = -1;
}

void Progress::finish() { clear(); }

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds > 3.6e9) return "?";
  const auto s = static_cast<int64_t>(std::ceil(std::max(seconds, 0.0)));
  char buffer[40];
  if (s < 3600) {
    std::snprintf(buffer, sizeof(buffer), "%d:%02d", static_cast<int>(s / 60), static_cast<int>(s % 60));
  } else {
    std::snprintf(buffer, sizeof(buffer), "%lld:%02d:%02d", static_cast<long long>(s / 3600),
                  static_cast<int>(s / 60 % 60), static_cast<int>(s % 60));
  }
  return buffer;
}

std::string format_count(double count) {
  static constexpr std::pair<double, const char*> kUnits[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
  char buffer[32];
  for (const auto& [size, sign] : kUnits) {
    if (std::abs(count) < size) continue;
    const double scaled = count / size;
    std::snprintf(buffer, sizeof(buffer), "%.*f%s", scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0, scaled, sign);
    return buffer;
  }
  return format_number(count, 3);
}

}  // namespace qkv
