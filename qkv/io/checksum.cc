// XXH64 and the list of checksums of a folder.
#include "qkv/io/checksum.h"

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

uint64_t xxh64(std::span<const std::byte> bytes) {
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  uint64_t hash = kPrime5;
  if (left >= 32) {
    uint64_t a = kPrime1 + kPrime2, b = kPrime2, c = 0, d = -kPrime1;
    for (; left >= 32; at += 32, left -= 32) {
      a = mixed(a, word<uint64_t>(at));
      b = mixed(b, word<uint64_t>(at + 8));
      c = mixed(c, word<uint64_t>(at + 16));
      d = mixed(d, word<uint64_t>(at + 24));
    }
    hash = std::rotl(a, 1) + std::rotl(b, 7) + std::rotl(c, 12) + std::rotl(d, 18);
    for (const uint64_t lane : {a, b, c, d}) hash = (hash ^ mixed(0, lane)) * kPrime1 + kPrime4;
  }
  hash += bytes.size();
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

void Checksums::write(const std::string& folder, const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += hex(xxh64(read_file(folder + "/" + name))) + "  " + name + "\n";
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
    if (name.find('/') != std::string::npos || !sums.sums_.emplace(name, sum).second) break;
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
  for (const auto& entry : sums_) check(entry.first, xxh64(read_file(folder_ + "/" + entry.first)));
}

}  // namespace qkv
