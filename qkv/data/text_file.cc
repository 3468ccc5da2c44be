// Lines of plain or gzip text files, with every odd line known by file and number.
#include "qkv/data/text_file.h"

#include <zlib.h>

#include <algorithm>
#include <filesystem>

#include "qkv/base/error.h"
#include "qkv/data/utf8.h"
#include "qkv/io/file.h"

namespace qkv {
namespace {

bool is_gzip(std::string_view bytes) { return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b'; }

// zlib's state, freed on every way out.
class Inflater {
 public:
  Inflater(std::string_view packed, const std::string& path) : packed_(packed), path_(path) {
    constexpr int kGzipOnly = 15 + 16;
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK) fail("zlib cannot start");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  std::string all(uint64_t limit) {
    std::string out;
    while (true) {
      const int status = step(out, limit);
      if (status != Z_STREAM_END) continue;
      if (!next_member()) return out;
    }
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const { throw IoError("cannot read " + path_ + ": " + reason); }

  int step(std::string& out, uint64_t limit) {
    // A full buffer means that zlib may hold more output although it has taken all its input.
    if (stream_.avail_in == 0 && !buffer_was_full_) {
      const size_t size = std::min(packed_.size() - fed_, kChunk);
      if (size == 0) fail("the gzip data is truncated");
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed_.data() + fed_));
      stream_.avail_in = static_cast<uInt>(size);
      fed_ += size;
    }
    stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
    stream_.avail_out = static_cast<uInt>(buffer_.size());
    const int status = inflate(&stream_, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) fail("the gzip data is damaged");
    buffer_was_full_ = stream_.avail_out == 0;
    out.append(buffer_.data(), buffer_.size() - stream_.avail_out);
    if (out.size() > limit) fail("it unpacks to more than " + std::to_string(limit) + " bytes");
    return status;
  }

  // Whether another gzip member follows; zero padding after the last one is allowed, as gzip itself does.
  bool next_member() {
    const size_t used = fed_ - stream_.avail_in;
    const std::string_view rest = packed_.substr(used);
    if (rest.find_first_not_of('\0') == std::string_view::npos) return false;
    if (!is_gzip(rest)) fail("there are other bytes after the gzip data");
    fed_ = used;
    stream_.avail_in = 0;
    buffer_was_full_ = false;
    if (inflateReset(&stream_) != Z_OK) fail("zlib cannot restart");
    return true;
  }

  static constexpr size_t kChunk = size_t{1} << 20;
  std::string_view packed_;
  const std::string& path_;
  z_stream stream_{};
  bool buffer_was_full_ = false;
  size_t fed_ = 0;  // bytes of packed_ handed to zlib
  std::string buffer_ = std::string(size_t{1} << 16, '\0');
};

}  // namespace

std::string read_plain_or_gz(const std::string& path, uint64_t limit) {
  std::string bytes = read_text(path, limit);
  if (is_gzip(bytes)) return Inflater(bytes, path).all(limit);
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

const char* name_of_fault(LineFault fault) {
  switch (fault) {
    case LineFault::empty:
      return "empty";
    case LineFault::invalid_utf8:
      return "not UTF-8";
    case LineFault::too_long:
      return "too long";
    case LineFault::none:
      break;
  }
  return "good";
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
  for (int fault = 1; fault < kLineFaults; ++fault) {
    if (counts_[static_cast<size_t>(fault)] == 0) continue;
    text += comma + std::to_string(counts_[static_cast<size_t>(fault)]) + " " +
            name_of_fault(static_cast<LineFault>(fault));
    comma = ", ";
  }
  comma = " (";
  for (const OddLine& odd : first_) {
    text += comma + odd.file + ":" + std::to_string(odd.line) + " " + name_of_fault(odd.fault);
    comma = ", ";
  }
  return text + (total() > static_cast<int64_t>(first_.size()) ? ", …)" : ")");
}

TextFile read_text_file(const std::string& path, int64_t max_bytes, LineReport& report) {
  TextFile file{.path = path, .lines = {}, .numbers = {}};
  int64_t number = 0;
  for (std::string& line : read_lines(path)) {
    ++number;
    const LineFault fault = check_line(line, max_bytes);
    if (fault != LineFault::none) {
      report.add(path, number, fault);
      continue;
    }
    file.lines.push_back(std::move(line));
    file.numbers.push_back(number);
  }
  return file;
}

}  // namespace qkv
