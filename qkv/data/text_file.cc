// Lines of plain or gzip text files; odd lines are reported with file and line number.
#include "qkv/data/text_file.h"

#include <filesystem>

#include "qkv/base/error.h"
#include "qkv/base/utf8.h"
#include "qkv/data/inflate.h"
#include "qkv/io/file.h"

namespace qkv {

std::string read_plain_or_gz(const std::string& path, uint64_t limit) {
  std::string bytes = read_text(path, limit);
  if (is_gzip(bytes)) return unpack_gzip(bytes, path, limit);
  if (path.ends_with(".gz")) {
    throw IoError("cannot read " + path + ": it is not a gzip file" + (bytes.empty() ? " (it is empty)" : ""));
  }
  return bytes;
}

std::string find_plain_or_gz(const std::string& stem) {
  std::error_code ignored;
  for (const char* ending : {"", ".gz"}) {
    if (std::filesystem::is_regular_file(stem + ending, ignored)) return stem + ending;
  }
  return "";
}

std::vector<std::string> split_lines(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.emplace_back(line);
  }
  return lines;
}

std::vector<std::string> read_lines(const std::string& path) { return split_lines(read_plain_or_gz(path)); }

LineFault check_line(std::string_view line, int64_t max_bytes) {
  if (first_invalid_utf8(line) >= 0) return LineFault::invalid_utf8;
  if (max_bytes > 0 && static_cast<int64_t>(line.size()) > max_bytes) return LineFault::too_long;
  return split_words(line).empty() ? LineFault::empty : LineFault::none;
}

void LineReport::add(const std::string& file, int64_t line, LineFault fault) {
  ++counts_[static_cast<size_t>(fault)];
  if (first_.size() < kKept) first_.push_back({file, line, fault});
}

int64_t LineReport::total() const {
  int64_t sum = 0;
  for (const int64_t count : counts_) sum += count;
  return sum;
}

std::string LineReport::summary() const {
  if (total() == 0) return "";
  std::string text = "skipped " + std::to_string(total()) + (total() == 1 ? " line: " : " lines: ");
  const char* comma = "";
  for (const auto& row : Names<LineFault>::rows) {
    if (count(row.value) == 0) continue;
    text += comma + std::to_string(count(row.value)) + " " + row.name;
    comma = ", ";
  }
  comma = " (";
  for (const OddLine& odd : first_) {
    text += comma + odd.file + ":" + std::to_string(odd.line) + " " + name_of(odd.fault);
    comma = ", ";
  }
  return text + (total() > static_cast<int64_t>(first_.size()) ? ", …)" : ")");
}

}  // namespace qkv
