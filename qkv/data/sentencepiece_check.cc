// The parts of sentencepiece_model.proto that a reader follows without looking, checked.
#include "qkv/data/sentencepiece_check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "qkv/base/error.h"
#include "qkv/base/utf8.h"

namespace qkv {
namespace {

[[noreturn]] void refuse(const char* what) { throw IoError(std::string("it is not a SentencePiece model: ") + what); }

// One field of a protobuf message: a number, or bytes.
struct Field {
  uint32_t number = 0;
  uint64_t value = 0;
  std::string_view bytes;
};

// Walks over the fields of a message.
class Message {
 public:
  explicit Message(std::string_view bytes) : left_(bytes) {}

  bool next(Field& field) {
    if (left_.empty()) return false;
    const uint64_t key = varint();
    field = {static_cast<uint32_t>(key >> 3), 0, {}};
    switch (key & 7) {
      case 0:
        field.value = varint();
        break;
      case 1:
        field.bytes = take(8);
        break;
      case 2:
        field.bytes = take(varint());
        break;
      case 5:
        field.bytes = take(4);
        break;
      default:
        refuse("a field of an unknown kind");
    }
    return true;
  }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(1)[0]);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    refuse("a number of too many bytes");
  }
  std::string_view take(uint64_t bytes) {
    if (bytes > left_.size()) refuse("it is truncated");
    const std::string_view taken = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return taken;
  }

  std::string_view left_;
};

// SentencePiece { string piece = 1; float score = 2; Type type = 3; }
void check_piece(std::string_view bytes) {
  constexpr uint64_t kNormal = 1, kByte = 6;  // the first and the last Type
  Message message(bytes);
  std::string_view piece;
  float score = 0;
  uint64_t type = kNormal;
  for (Field field; message.next(field);) {
    if (field.number == 1) piece = field.bytes;
    if (field.number == 2 && field.bytes.size() == sizeof score) std::memcpy(&score, field.bytes.data(), sizeof score);
    if (field.number == 3) type = field.value;
  }
  if (piece.empty() || first_invalid_utf8(piece) >= 0) refuse("a piece is empty or not UTF-8");
  if (piece.find('\0') != std::string_view::npos) refuse("a piece holds a zero byte");
  if (!std::isfinite(score) || std::abs(score) > 1e6F) refuse("a score is not a number");
  if (type < kNormal || type > kByte) refuse("a piece is of an unknown type");
}

// A trie of Darts-clone as an array of units; equal ends are shared. From unit i a byte c leads to unit
// i ^ offset(i) ^ c, which must bear the label c; a unit with a leaf has its value at i ^ offset(i).
class Trie {
 public:
  explicit Trie(std::string_view bytes) : units_(bytes.size() / 4), leaves_(units_.size(), kUnseen) {
    constexpr size_t kBlock = 256;
    if (bytes.empty() || bytes.size() % (4 * kBlock) != 0) refuse("its table of normalisation is of a wrong size");
    std::memcpy(units_.data(), bytes.data(), bytes.size());
  }

  // Every path stays inside and ends, with at most as many leaves as the library has room for, and values below
  // `values`. Depth first, without recursion: the depth is the file's.
  void check(uint64_t values) {
    constexpr int kMostLeaves = 32;
    struct Visit {
      size_t unit, base;
      uint32_t next;  // byte to try
      int leaves;     // most on a path from here
    };
    std::vector<Visit> open;
    const auto enter = [&](size_t unit) {
      leaves_[unit] = kOpen;
      const size_t base = unit ^ offset(units_[unit]);
      if ((base | 255) >= units_.size()) refuse("its table of normalisation leads outside itself");
      if (has_leaf(units_[unit]) && (units_[base] & kValueBits) >= values) {
        refuse("its table of normalisation names text that is not there");
      }
      open.push_back({unit, base, 1, 0});
    };
    enter(0);
    while (!open.empty()) {
      Visit& at = open.back();
      while (at.next < 256 && (units_[at.base ^ at.next] & kLabelBits) != at.next) ++at.next;
      if (at.next == 256) {
        leaves_[at.unit] = at.leaves + (has_leaf(units_[at.unit]) ? 1 : 0);
        if (leaves_[at.unit] > kMostLeaves) refuse("its table of normalisation is too deep");
        open.pop_back();
        continue;
      }
      const size_t child = at.base ^ at.next;
      if (leaves_[child] == kOpen) refuse("its table of normalisation does not end");
      if (leaves_[child] == kUnseen) {
        enter(child);
        continue;
      }
      at.leaves = std::max(at.leaves, leaves_[child]);
      ++at.next;
    }
  }

 private:
  static constexpr uint32_t kLabelBits = 0x800000FF, kValueBits = 0x7FFFFFFF;
  static bool has_leaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
  static size_t offset(uint32_t unit) { return size_t{unit >> 10} << ((unit & 512u) >> 6); }

  static constexpr int kUnseen = -1, kOpen = -2;

  std::vector<uint32_t> units_;
  std::vector<int> leaves_;  // most on a path from each unit, or how far it is known
};

// The size of the trie, the trie, and texts that end in zero bytes.
void check_table(std::string_view table) {
  if (table.empty()) return;
  uint32_t size = 0;
  if (table.size() < sizeof size) refuse("its table of normalisation is truncated");
  std::memcpy(&size, table.data(), sizeof size);
  if (size > table.size() - sizeof size) refuse("its table of normalisation is truncated");
  const std::string_view texts = table.substr(sizeof size + size);
  if (texts.empty() || texts.back() != '\0' || first_invalid_utf8(texts) >= 0) {
    refuse("the texts of its normalisation are damaged");
  }
  Trie(table.substr(sizeof size, size)).check(texts.size());
}

}  // namespace

// ModelProto { repeated SentencePiece pieces = 1; …; NormalizerSpec normalizer_spec = 3; denormalizer_spec = 5; }
// NormalizerSpec { …; bytes precompiled_charsmap = 2; }
void check_sentencepiece_model(std::string_view model) {
  Message message(model);
  for (Field field; message.next(field);) {
    if (field.number == 1) check_piece(field.bytes);
    if (field.number != 3 && field.number != 5) continue;
    Message normalizer(field.bytes);
    for (Field inner; normalizer.next(inner);) {
      if (inner.number == 2) check_table(inner.bytes);
    }
  }
}

}  // namespace qkv
