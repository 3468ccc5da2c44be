// A UTF-8 text of any size: checked once, then read in pieces by the number of a character.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/io/byte_source.h"

namespace qkv {

/// Characters [begin, end) of a text.
struct TextPart {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const TextPart&) const = default;
};

/// The beginning of a text for training, its end for validation.
struct TextSplit {
  TextPart train, validation;
};

/// How often each code point is there.
using CharacterCounts = std::map<char32_t, int64_t>;

/// Its characters: \r before \n or at the end and a byte-order mark at the beginning do not count. Of a file only an
/// index stays in memory, 2 bytes per KiB.
class PlainText {
 public:
  /// Reads a file once, in pieces on all threads, and tells of its progress (qkv/data/preparation.h); what is gzip, or
  /// no regular file, is held in memory. Throws IoError: cannot be read, "PATH:LINE: not UTF-8".
  static std::shared_ptr<const PlainText> read(const std::string& path);
  static std::shared_ptr<const PlainText> of(std::string text, std::string name);

  const std::string& name() const { return name_; }
  /// Whether it is read from a file whenever it is needed.
  bool in_file() const { return in_file_; }
  TextPart all() const { return {0, starts_.back()}; }
  /// Depends on every byte: XXH64 of those of its pieces.
  uint64_t sum() const { return sum_; }

  /// The bytes of a part. Throws IoError when the file was changed.
  std::string characters(TextPart part) const;
  /// Writes a copy, unpacked.
  void copy_to(const std::string& path) const;
  /// Of the whole text, line ends included, and of a part of it.
  const CharacterCounts& counts() const { return counts_; }
  CharacterCounts counts(TextPart part) const;

  /// The last `share` of the characters, from the next line's beginning where there is one, is for validation. Throws
  /// IoError when the text is too short to split; ConfigError for a share outside (0, 1).
  TextSplit split(double share) const;
  /// Takes the next stretch from a part that is read from beginning to end: at most kStretch characters, whole lines
  /// where a line fits, else whole words where a word fits.
  std::string take_stretch(TextPart& rest) const;
  static constexpr int64_t kStretch = 250'000;  // at most 1,000,000 bytes

 private:
  PlainText(std::shared_ptr<const ByteSource> source, std::string name, bool in_file);
  struct Piece;
  Piece scanned(uint64_t number);
  void scan();
  [[noreturn]] void refuse(uint64_t invalid) const;
  int64_t after_line_end(int64_t from) const;

  std::shared_ptr<const ByteSource> source_;
  std::string name_;
  bool in_file_;
  uint64_t sum_ = 0;
  std::vector<int64_t> starts_;  // characters that begin before byte i · kMark; the last: all of them
  CharacterCounts counts_;
};

/// How many characters a valid text has.
int64_t count_characters(std::string_view text);

}  // namespace qkv
