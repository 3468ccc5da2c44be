// XXH64 and the list of checksums of a folder.
#include "qkv/io/checksum.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "qkv/base/error.h"

namespace qkv {
namespace {

constexpr const char* kFile = "/CHECKSUMS";
constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87, kPrime2 = 0xC2B2AE3D27D4EB4F, kPrime3 = 0x165667B19E3779F9,
                   kPrime4 = 0x85EBCA77C2B2AE63, kPrime5 = 0x27D4EB2F165667C5;

template <class T>
T word(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  if constexpr (std::endian::native == std::endian::big) {
    value = sizeof(T) == 8 ? static_cast<T>(__builtin_bswap64(value)) : static_cast<T>(__builtin_bswap32(value));
  }
  return value;
}

uint64_t mixed(uint64_t lane, uint64_t input) { return std::rotl(lane + input * kPrime2, 31) * kPrime1; }

std::string hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

Xxh64::Xxh64() : lanes_{kPrime1 + kPrime2, kPrime2, 0, -kPrime1} {}

void Xxh64::mix(const std::byte* stripe) {
  for (size_t i = 0; i < 4; ++i) lanes_[i] = mixed(lanes_[i], word<uint64_t>(stripe + 8 * i));
}

void Xxh64::add(std::span<const std::byte> bytes) {
  bytes_ += bytes.size();
  if (waiting_ > 0) {
    const size_t n = std::min(bytes.size(), rest_.size() - waiting_);
    std::copy_n(bytes.begin(), n, rest_.begin() + static_cast<std::ptrdiff_t>(waiting_));
    waiting_ += n;
    bytes = bytes.subspan(n);
    if (waiting_ < rest_.size()) return;
    mix(rest_.data());
    waiting_ = 0;
  }
  for (; bytes.size() >= rest_.size(); bytes = bytes.subspan(rest_.size())) mix(bytes.data());
  std::copy(bytes.begin(), bytes.end(), rest_.begin());
  waiting_ = bytes.size();
}

uint64_t Xxh64::sum() const {
  uint64_t hash = kPrime5;
  if (bytes_ >= rest_.size()) {
    const auto& [a, b, c, d] = lanes_;
    hash = std::rotl(a, 1) + std::rotl(b, 7) + std::rotl(c, 12) + std::rotl(d, 18);
    for (const uint64_t lane : lanes_) hash = (hash ^ mixed(0, lane)) * kPrime1 + kPrime4;
  }
  hash += bytes_;
  const std::byte* at = rest_.data();
  size_t left = waiting_;
  for (; left >= 8; at += 8, left -= 8) {
    hash = std::rotl(hash ^ mixed(0, word<uint64_t>(at)), 27) * kPrime1 + kPrime4;
  }
  if (left >= 4) {
    hash = std::rotl(hash ^ word<uint32_t>(at) * kPrime1, 23) * kPrime2 + kPrime3;
    at += 4;
    left -= 4;
  }
  for (; left > 0; ++at, --left) hash = std::rotl(hash ^ std::to_integer<uint64_t>(*at) * kPrime5, 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

uint64_t xxh64(std::span<const std::byte> bytes) {
  Xxh64 hash;
  hash.add(bytes);
  return hash.sum();
}

FileSum sum_of_file(const std::string& path) {
  Xxh64 hash;
  FileSum found;
  read_pieces(path, [&](std::span<const std::byte> piece) {
    hash.add(piece);
    found.bytes += piece.size();
  });
  found.sum = hash.sum();
  return found;
}

void Checksums::write(const std::string& folder, const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += hex(sum_of_file(folder + "/" + name).sum) + "  " + name + "\n";
  write_file_atomic(folder + kFile, text);
}

Checksums Checksums::load(const std::string& folder) {
  Checksums sums(folder);
  const std::string path = folder + kFile;
  if (std::error_code error; !std::filesystem::exists(path, error)) return sums;
  const std::string text = read_text(path, uint64_t{1} << 20);
  size_t at = 0;
  for (size_t end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    uint64_t sum = 0;
    const char* const begin = text.data() + at;
    const auto [stop, bad] = std::from_chars(begin, begin + std::min<size_t>(16, end - at), sum, 16);
    const bool whole = bad == std::errc() && stop == begin + 16 && end - at > 18;
    if (!whole || text.compare(at + 16, 2, "  ") != 0) break;
    const std::string name = text.substr(at + 18, end - at - 18);
    if (name.size() > 255 || name.find('/') != std::string::npos || !sums.sums_.emplace(name, sum).second) break;
  }
  if (at != text.size() || text.empty()) throw IoError(path + ": damaged: not a list of checksums");
  return sums;
}

void Checksums::check(const std::string& name, uint64_t sum) const {
  if (sums_.empty()) return;
  const auto expected = sums_.find(name);
  if (expected == sums_.end()) throw IoError(folder_ + kFile + ": damaged: it does not list " + name);
  if (expected->second == sum) return;
  throw IoError(folder_ + "/" + name + ": damaged: its bytes are not those that were saved (see CHECKSUMS beside it)");
}

void Checksums::check_all() const {
  constexpr uint64_t kMost = uint64_t{1} << 28;  // a hole of terabytes costs nothing to make, and hours to read
  for (const auto& entry : sums_) {
    const std::string path = folder_ + "/" + entry.first;
    std::error_code error;
    const auto size = std::filesystem::file_size(path, error);
    if (!error && !path.ends_with(".txt")) check_file_size(path, size, kMost);  // a text may have any size
    check(entry.first, sum_of_file(path).sum);
  }
}

}  // namespace qkv
