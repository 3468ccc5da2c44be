// Lines of plain or gzip text files; odd lines are reported with file and line number.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/base/names.h"

namespace qkv {

/// Decompressed files beyond this are refused: a few bytes of gzip can stand for terabytes.
inline constexpr uint64_t kMaxUnpackedBytes = uint64_t{8} << 30;

/// The bytes of a file, decompressed when they are gzip (detected by content, not by name; several members one after
/// another are one text). Throws IoError naming the file: cannot be read, truncated or damaged gzip, more than
/// `limit` bytes, a name that ends in .gz without gzip inside.
std::string read_plain_or_gz(const std::string& path, uint64_t limit = kMaxUnpackedBytes);
/// `stem` or `stem`.gz, whichever is a file (the plain one when both are); "" when neither is.
std::string find_plain_or_gz(const std::string& stem);

/// The lines of a UTF-8 text: ended by \n or \r\n, the last one with or without; a byte-order mark is dropped.
std::vector<std::string> split_lines(std::string_view text);
/// split_lines of read_plain_or_gz.
std::vector<std::string> read_lines(const std::string& path);

enum class LineFault : uint8_t { none, empty, invalid_utf8, too_long };
template <>
struct Names<LineFault> {
  static constexpr const char* what = "fault of a line";
  static constexpr NameRow<LineFault> rows[] = {{LineFault::none, "good"},
                                                {LineFault::empty, "empty"},
                                                {LineFault::invalid_utf8, "not UTF-8"},
                                                {LineFault::too_long, "too long"}};
};

/// What is wrong with a line as training text. Only white space counts as empty; `max_bytes` 0 means any length.
LineFault check_line(std::string_view line, int64_t max_bytes);

/// One line that was left out.
struct OddLine {
  std::string file;
  int64_t line = 0;  // from 1
  LineFault fault = LineFault::none;
};

/// What was left out and where: counts of everything, places of the first kKept.
class LineReport {
 public:
  static constexpr size_t kKept = 20;

  void add(const std::string& file, int64_t line, LineFault fault);
  /// How many lines of this fault were added.
  int64_t count(LineFault fault) const { return counts_[static_cast<size_t>(fault)]; }
  int64_t total() const;
  const std::vector<OddLine>& first() const { return first_; }
  /// "skipped 3 lines: 2 empty, 1 too long (a.de:4 empty, a.en:9 empty, a.de:11 too long)"; "" when nothing was.
  std::string summary() const;

 private:
  std::array<int64_t, std::size(Names<LineFault>::rows)> counts_{};
  std::vector<OddLine> first_;
};

}  // namespace qkv
