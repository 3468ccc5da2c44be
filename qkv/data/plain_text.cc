// Scanning a text in pieces whose borders may cut a character, and finding a character again by the index.
#include "qkv/data/plain_text.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <system_error>

#include "qkv/base/budget.h"
#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "qkv/base/utf8.h"
#include "qkv/data/inflate.h"
#include "qkv/data/preparation.h"
#include "qkv/data/text_file.h"
#include "qkv/io/checksum.h"
#include "qkv/io/file.h"

namespace qkv {
namespace {

constexpr uint64_t kMark = 4096;                // bytes between entries of the index
constexpr uint64_t kPiece = uint64_t{1} << 20;  // bytes that a thread scans at a time
constexpr uint64_t kPiecesAtOnce = 64;
constexpr uint64_t kBeyond = 4;  // bytes after a piece that say how it ends: the rest of a character, the \n after a \r
constexpr uint64_t kNowhere = std::numeric_limits<uint64_t>::max();
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool continues(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

/// Whether the \r at `at` is a part of the line's end.
bool ends_line(std::string_view text, size_t at) { return at + 1 >= text.size() || text[at + 1] == '\n'; }

/// Counts by code point, quickly for the usual ones.
class Histogram {
 public:
  void add(char32_t c) {
    if (c < kUsual) {
      ++usual_[c];
    } else {
      ++others_[c];
    }
  }
  void add_to(CharacterCounts& counts) const {
    for (char32_t c = 0; c < kUsual; ++c) {
      if (usual_[c] > 0) counts[c] += usual_[c];
    }
    for (const auto& [c, n] : others_) counts[c] += n;
  }

 private:
  static constexpr char32_t kUsual = 0x20000;
  std::array<uint32_t, kUsual> usual_{};
  std::map<char32_t, uint32_t> others_;
};

}  // namespace

int64_t count_characters(std::string_view text) {
  return static_cast<int64_t>(text.size()) - std::count_if(text.begin(), text.end(), continues);
}

struct PlainText::Piece {
  uint64_t first = 0, end = 0;  // bytes: where its first character begins and its last one ends
  uint64_t invalid = kNowhere, sum = 0;
  CharacterCounts counts;
};

PlainText::PlainText(std::shared_ptr<const ByteSource> source, std::string name, bool in_file)
    : source_(std::move(source)), name_(std::move(name)), in_file_(in_file) {
  scan();
}

std::shared_ptr<const PlainText> PlainText::read(const std::string& path) {
  // What is found in place of a file (a pipe, a device) is read to its end, or refused.
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return of(read_plain_or_gz(path), path);
  auto file = ByteSource::of_file(path);
  if (path.ends_with(".gz") || is_gzip(file->read(0, 2))) return of(read_plain_or_gz(path), path);
  return std::shared_ptr<const PlainText>(new PlainText(std::move(file), path, true));
}

std::shared_ptr<const PlainText> PlainText::of(std::string text, std::string name) {
  return std::shared_ptr<const PlainText>(new PlainText(ByteSource::of_text(std::move(text)), std::move(name), false));
}

PlainText::Piece PlainText::scanned(uint64_t number) {
  const uint64_t from = number * kPiece;
  const std::string bytes = source_->read(from, kPiece + kBeyond);
  const std::string_view text = bytes;
  const size_t own = std::min<size_t>(text.size(), kPiece);
  Piece piece;
  piece.sum = xxh64(bytes_of(text.substr(0, own)));
  const auto histogram = std::make_unique<Histogram>();
  size_t at = 0;
  if (from == 0 && text.starts_with(kByteOrderMark)) at = kByteOrderMark.size();
  while (from > 0 && at < own && at < 3 && continues(text[at])) ++at;
  piece.first = from + at;
  for (size_t mark = 0; mark * kMark < own; ++mark) {
    const size_t border = std::min<size_t>(own, (mark + 1) * kMark);
    int64_t characters = 0;
    while (at < border) {
      const auto lead = static_cast<uint8_t>(text[at]);
      if (lead < 0x80) {
        const bool counts = lead != '\r' || !ends_line(text, at);
        if (counts) histogram->add(lead);
        characters += counts ? 1 : 0;
        ++at;
        continue;
      }
      const Utf8Char c = decode_utf8(text, static_cast<int64_t>(at));
      if (!c.valid) {
        piece.invalid = from + at;
        return piece;
      }
      histogram->add(c.value);
      ++characters;
      at += static_cast<size_t>(c.bytes);
    }
    starts_[from / kMark + mark + 1] = characters;
  }
  piece.end = from + at;
  histogram->add_to(piece.counts);
  return piece;
}

void PlainText::scan() {
  const uint64_t size = source_->size(), pieces = (size + kPiece - 1) / kPiece;
  starts_.assign(static_cast<size_t>((size + kMark - 1) / kMark + 1), 0);
  Xxh64 sum;
  uint64_t end = 0;
  for (uint64_t done = 0; done < pieces; done += kPiecesAtOnce) {
    std::vector<Piece> some(static_cast<size_t>(std::min(kPiecesAtOnce, pieces - done)));
    parallel_for(static_cast<int64_t>(some.size()),
                 [&](int64_t i) { some[static_cast<size_t>(i)] = scanned(done + static_cast<uint64_t>(i)); });
    check_budget();
    for (size_t i = 0; i < some.size(); ++i) {
      const Piece& piece = some[i];
      const bool gap = done + i > 0 && piece.first != end;  // a character that does not end where the next begins
      if (gap || piece.invalid != kNowhere) refuse(gap ? std::min(piece.first, end) : piece.invalid);
      end = piece.end;
      sum.add(std::as_bytes(std::span(&piece.sum, 1)));
      for (const auto& [c, n] : piece.counts) counts_[c] += n;
    }
    tell_progress("reading " + name_, std::min(size, (done + kPiecesAtOnce) * kPiece), size);
  }
  sum_ = sum.sum();
  for (size_t i = 1; i < starts_.size(); ++i) starts_[i] += starts_[i - 1];
}

void PlainText::refuse(uint64_t invalid) const {
  int64_t line = 1;
  for (uint64_t at = 0; at < invalid; at += kPiece) {
    const std::string text = source_->read(at, std::min(kPiece, invalid - at));
    line += std::count(text.begin(), text.end(), '\n');
  }
  throw IoError(name_ + ":" + std::to_string(line) + ": not UTF-8");
}

std::string PlainText::characters(TextPart part) const {
  if (part.begin < 0 || part.end > starts_.back()) throw Error("[text] characters beyond the end of " + name_);
  if (part.size() <= 0) return "";
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), part.begin);
  const auto last = std::lower_bound(after, starts_.end(), part.end);
  int64_t number = *(after - 1);
  const auto from = static_cast<uint64_t>(after - starts_.begin() - 1) * kMark;
  const auto to = static_cast<uint64_t>(last - starts_.begin()) * kMark;
  const std::string text = source_->read(from, to - from + kBeyond);
  size_t at = 0;
  if (from == 0 && text.starts_with(kByteOrderMark)) at = kByteOrderMark.size();
  while (from > 0 && at < text.size() && continues(text[at])) ++at;
  std::string found;
  found.reserve(static_cast<size_t>(part.size()));
  while (at < text.size() && number < part.end) {
    const size_t begin = at++;
    while (at < text.size() && continues(text[at])) ++at;
    if (text[begin] == '\r' && ends_line(text, begin)) continue;
    if (number++ >= part.begin) found.append(text, begin, at - begin);
  }
  return found;
}

void PlainText::copy_to(const std::string& path) const {
  AtomicFile file(path);
  for (uint64_t at = 0; at < source_->size(); at += kPiece) file.write(source_->read(at, kPiece));
  file.commit();
}

CharacterCounts PlainText::counts(TextPart part) const {
  constexpr int64_t kCounted = 1 << 20;
  CharacterCounts all;
  for (int64_t at = part.begin; at < part.end; at += kCounted * static_cast<int64_t>(kPiecesAtOnce)) {
    const int64_t n = std::min(part.end - at, kCounted * static_cast<int64_t>(kPiecesAtOnce));
    std::vector<CharacterCounts> some(static_cast<size_t>((n + kCounted - 1) / kCounted));
    parallel_blocks(n, kCounted, [&](int64_t begin, int64_t end) {
      const std::string text = characters({at + begin, at + end});
      const auto histogram = std::make_unique<Histogram>();
      for (int64_t i = 0; i < static_cast<int64_t>(text.size());) {
        const Utf8Char c = decode_utf8(text, i);
        histogram->add(c.value);
        i += c.bytes;
      }
      histogram->add_to(some[static_cast<size_t>(begin / kCounted)]);
    });
    check_budget();
    for (const CharacterCounts& counts : some) {
      for (const auto& [c, count] : counts) all[c] += count;
    }
  }
  return all;
}

int64_t PlainText::after_line_end(int64_t from) const {
  for (int64_t at = from; at < all().end; at += kStretch) {
    const std::string text = characters({at, std::min(at + kStretch, all().end)});
    if (const size_t end = text.find('\n'); end != std::string::npos) {
      return at + count_characters(std::string_view(text).substr(0, end + 1));
    }
  }
  return all().end;
}

TextSplit PlainText::split(double share) const {
  if (!(share > 0 && share < 1)) throw ConfigError("the share for validation must be between 0 and 1");
  const int64_t n = all().size();
  auto at = static_cast<int64_t>(static_cast<double>(n) * (1 - share));
  if (at < 1 || at + 2 > n) {
    throw IoError("cannot use " + name_ + ": " + std::to_string(n) +
                  " characters are too few for training and validation");
  }
  const int64_t line = after_line_end(at);
  if (line < n && characters({line, std::min(line + 2, n)}).size() >= 2) at = line;
  return {{0, at}, {at, n}};
}

std::string PlainText::take_stretch(TextPart& rest) const {
  const TextPart most{rest.begin, std::min(rest.end, rest.begin + kStretch)};
  std::string text = characters(most);
  rest.begin = most.end;
  if (rest.size() == 0) return text;
  for (const char border : {'\n', ' '}) {
    const size_t last = text.rfind(border);
    if (last == std::string::npos) continue;
    rest.begin -= count_characters(std::string_view(text).substr(last + 1));
    text.resize(last + 1);
    break;
  }
  return text;
}

}  // namespace qkv
