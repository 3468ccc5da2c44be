// Parsing and checking of .npy headers; every limit is checked before it is relied on.
#include "qkv/io/npy_header.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "qkv/base/error.h"

namespace qkv::detail {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
// NumPy itself refuses longer ones; an array of 8 dimensions needs about 300.
constexpr size_t kMaxHeader = 10000;

// Shows what the file holds without letting it break the one line of a message.
std::string printable(std::string_view text, size_t limit = 40) {
  std::string out;
  for (const char c : text.substr(0, limit)) out += (c >= 0x20 && c < 0x7f) ? c : '?';
  return text.size() > limit ? out + "..." : out;
}

class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  NpyHeader parse() {
    NpyHeader header;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (peek() != '}') {
      const std::string_view key = string();
      expect(':');
      if (key == "descr" && !has_descr) {
        has_descr = true;
        descr(header);
      } else if (key == "fortran_order" && !has_order) {
        has_order = true;
        header.fortran_order = boolean();
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        header.shape = shape();
      } else {
        fail("unexpected or repeated key '" + printable(key) + "' in the header");
      }
      if (peek() == ',') {
        expect(',');
      } else if (peek() != '}') {
        fail("damaged header: expected ',' or '}'");
      }
    }
    expect('}');
    skip_space();
    if (at_ < text_.size()) fail("damaged header: text after its closing brace");
    if (!has_descr || !has_order || !has_shape) {
      fail("header lacks '" + std::string(!has_descr ? "descr" : !has_order ? "fortran_order" : "shape") + "'");
    }
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw IoError(name_ + ": " + what); }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  void expect(char c) {
    if (peek() != c) fail(std::string("damaged header: expected '") + c + "'");
    ++at_;
  }
  bool take(std::string_view word) {
    skip_space();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  std::string_view string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail("damaged header: expected a quoted name");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("damaged header: unfinished string");
    const std::string_view s = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return s;
  }
  bool boolean() {
    if (take("True")) return true;
    if (!take("False")) fail("damaged header: fortran_order is neither True nor False");
    return false;
  }

  int64_t integer() {
    skip_space();
    if (peek() == '-') fail("negative size in the shape");
    int64_t value = 0;
    const size_t start = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      const int digit = text_[at_] - '0';
      if (value > (std::numeric_limits<int64_t>::max() - digit) / 10) fail("size in the shape is too large");
      value = value * 10 + digit;
    }
    if (at_ == start) fail("damaged header: expected a size in the shape");
    take("L");  // Python 2 wrote long integers so
    return value;
  }
  Shape shape() {
    Shape shape;
    expect('(');
    while (peek() != ')') {
      if (shape.rank() == Shape::kMaxRank) fail("more than 8 dimensions");
      shape.push_back(integer());
      if (peek() == ',') {
        expect(',');
      } else if (peek() != ')' || shape.rank() == 1) {
        fail("damaged header: the shape is not a tuple");
      }
    }
    expect(')');
    return shape;
  }

  void descr(NpyHeader& header) {
    if (peek() == '[' || peek() == '(' || peek() == '{') {
      fail("structured dtype (records) is not supported; save one plain array per field");
    }
    const std::string_view s = string();
    const std::string_view code = s.empty() ? s : s.substr(1);
    const std::optional<NpyType> type = type_of_code(code);
    const char order = s.empty() ? '\0' : s[0];
    if (!type && !code.empty() && code[0] == 'O') {
      fail("object dtype (pickled Python objects) is not supported; save a numeric array");
    }
    if (!type || (order != '<' && order != '>' && order != '|' && order != '=')) {
      fail("dtype '" + printable(s) + "' is not supported; use bool, an integer, float16, float32 or float64");
    }
    if (order == '|' && item_size(*type) != 1) fail("dtype '" + printable(s) + "' has no byte order");
    header.type = *type;
    header.big_endian = order == '>';
  }
  std::string_view text_;
  const std::string& name_;
  size_t at_ = 0;
};

}  // namespace

std::optional<uint64_t> array_bytes(const Shape& shape, size_t item) {
  uint64_t bytes = item;
  bool empty = false;
  for (const int64_t size : shape) {
    empty = empty || size == 0;
    if (size > 0 && __builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes)) return std::nullopt;
  }
  if (bytes > static_cast<uint64_t>(std::numeric_limits<ptrdiff_t>::max())) return std::nullopt;  // 2³¹ of 32 bits
  return empty ? 0 : bytes;
}

NpyHeader parse_npy_header(std::span<const std::byte> file, const std::string& name, uint64_t whole) {
  whole = std::max<uint64_t>(whole, file.size());
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(text[i])); };
  if (text.empty()) throw IoError(name + ": the file is empty, expected a .npy array");
  if (text.substr(0, 6) != kMagic.substr(0, text.size())) {
    const bool zip = text.substr(0, 2) == "PK";
    throw IoError(name + (zip ? ": a .npz archive, expected a single .npy array" : ": not a .npy file"));
  }
  if (text.size() < 10) throw IoError(name + ": truncated .npy file (" + std::to_string(text.size()) + " bytes)");
  const size_t major = byte(6), minor = byte(7);
  if (major < 1 || major > 3 || minor != 0) {
    throw IoError(name + ": .npy format version " + std::to_string(major) + "." + std::to_string(minor) +
                  " is not supported (1.0, 2.0 and 3.0 are)");
  }
  const size_t start = major == 1 ? 10 : 12;
  if (text.size() < start) throw IoError(name + ": truncated .npy file (" + std::to_string(text.size()) + " bytes)");
  size_t length = byte(8) | byte(9) << 8;
  if (major > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > text.size() - start) {
    throw IoError(name + ": truncated .npy file: its header should be " + std::to_string(length) + " bytes, " +
                  std::to_string(text.size() - start) + " are left");
  }
  if (length > kMaxHeader) {
    throw IoError(name + ": header of " + std::to_string(length) + " bytes, more than the " +
                  std::to_string(kMaxHeader) + " allowed");
  }
  NpyHeader header = HeaderParser(text.substr(start, length), name).parse();
  header.data_offset = start + length;
  const std::optional<uint64_t> bytes = array_bytes(header.shape, item_size(header.type));
  if (!bytes) throw IoError(name + ": shape " + header.shape.str() + " is too large");
  header.data_bytes = static_cast<size_t>(*bytes);
  const uint64_t held = whole - header.data_offset;
  if (held != header.data_bytes) {
    throw IoError(name + (held < header.data_bytes ? ": truncated: " : ": bytes after the array: ") + "shape " +
                  header.shape.str() + " of " + type_name(header.type) + " takes " + std::to_string(header.data_bytes) +
                  " bytes, the file holds " + std::to_string(held));
  }
  return header;
}

}  // namespace qkv::detail
