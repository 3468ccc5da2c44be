// The ustar format: a header of 512 bytes for each file, its bytes filled up to a multiple of 512, two empty blocks.
#include "qkv/io/tar.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "qkv/base/error.h"

namespace qkv {
namespace {

constexpr size_t kBlock = 512, kMostEntries = 10000;

struct Header {
  char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100], magic[6], version[2], user[32],
      group[32], major[8], minor[8], prefix[155], rest[12];
};
static_assert(sizeof(Header) == kBlock);

template <size_t N>
std::string_view text_of(const char (&field)[N]) {
  return {field, static_cast<size_t>(std::find(field, field + N, '\0') - field)};
}

// Octal digits with spaces or zero bytes around them; -1 for anything else.
template <size_t N>
int64_t number_of(const char (&field)[N]) {
  int64_t value = 0;
  size_t at = 0;
  bool any = false;
  while (at < N && field[at] == ' ') ++at;
  for (; at < N && field[at] >= '0' && field[at] <= '7'; ++at, any = true) value = value * 8 + (field[at] - '0');
  for (; at < N; ++at) {
    if (field[at] != ' ' && field[at] != '\0') return -1;
  }
  return any ? value : -1;
}

// The value in `digits` octal digits; what follows them stays.
void put_octal(char* field, int digits, uint64_t value) {
  for (int i = digits; i-- > 0; value /= 8) field[i] = static_cast<char>('0' + value % 8);
}

// The sum of all bytes, those of the sum's own field counted as spaces.
int64_t sum_of(Header header) {
  std::memset(header.sum, ' ', sizeof header.sum);
  std::array<unsigned char, kBlock> bytes;
  std::memcpy(bytes.data(), &header, kBlock);
  int64_t sum = 0;
  for (const unsigned char b : bytes) sum += b;
  return sum;
}

bool leads_below(std::string_view name) {
  if (name.empty() || name.find('\\') != std::string_view::npos) return false;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

std::string name_in(const Header& header) {
  std::string name(text_of(header.name));
  if (!text_of(header.prefix).empty()) name = std::string(text_of(header.prefix)) + "/" + name;
  if (name.starts_with("./")) name.erase(0, 2);
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  return name;
}

uint64_t padding_of(uint64_t bytes) { return (kBlock - bytes % kBlock) % kBlock; }

}  // namespace

std::vector<TarEntry> list_tar(const ByteSource& archive, const std::string& name) {
  const auto fail = [&](const std::string& what) -> IoError { return IoError(name + ": " + what); };
  std::vector<TarEntry> files;
  size_t entries = 0;
  for (uint64_t at = 0; at + kBlock <= archive.size();) {
    if (++entries > kMostEntries) throw fail("more than " + std::to_string(kMostEntries) + " files and folders");
    const std::string block = archive.read(at, kBlock);
    if (block.size() < kBlock) break;  // the file has become shorter
    if (block.find_first_not_of('\0') == std::string::npos) return files;
    Header header;
    std::memcpy(&header, block.data(), kBlock);
    if (std::memcmp(header.magic, "ustar", 5) != 0) throw fail("not an uncompressed .tar archive");
    if (number_of(header.sum) != sum_of(header)) throw fail("a damaged .tar archive: a header's sum is wrong");
    const std::string entry = name_in(header);
    const int64_t size = number_of(header.size);
    at += kBlock;
    if (size < 0 || static_cast<uint64_t>(size) > archive.size() - at) throw fail("a .tar archive that is cut off");
    const auto bytes = static_cast<uint64_t>(size);
    const bool folder = header.type == '5';
    if (!folder && header.type != '0' && header.type != '\0') {
      throw fail("the archive holds more than plain files (links, devices or long names)");
    }
    if (!folder || entry != ".") {
      if (!leads_below(entry)) throw fail("the archive names a file outside itself");
    }
    if (!folder) files.push_back({entry, at, bytes});
    at += std::min(bytes + padding_of(bytes), archive.size() - at);
  }
  throw fail(files.empty() ? "not an uncompressed .tar archive" : "a .tar archive that is cut off");
}

std::vector<TarFile> parse_tar(std::span<const std::byte> archive, const std::string& name) {
  std::vector<TarFile> files;
  for (TarEntry& entry : list_tar(*ByteSource::of_bytes(archive), name)) {
    const auto bytes = archive.subspan(static_cast<size_t>(entry.begin), static_cast<size_t>(entry.bytes));
    files.push_back({std::move(entry.name), bytes});
  }
  return files;
}

void TarWriter::add(const std::string& name, std::span<const std::byte> bytes) {
  Header header{};
  const size_t slash = name.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : name.substr(0, slash);
  const std::string own = slash == std::string::npos ? name : name.substr(slash + 1);
  if (!leads_below(name) || own.size() > sizeof header.name || folder.size() > sizeof header.prefix) {
    throw IoError("the name " + name + " does not fit into a .tar archive");
  }
  std::memcpy(header.name, own.data(), own.size());
  std::memcpy(header.prefix, folder.data(), folder.size());
  // No owner, no time: the same files give the same archive.
  put_octal(header.mode, 7, 0644);
  put_octal(header.uid, 7, 0);
  put_octal(header.gid, 7, 0);
  put_octal(header.mtime, 11, 0);
  put_octal(header.size, 11, bytes.size());
  header.type = '0';
  std::memcpy(header.magic, "ustar", sizeof header.magic);
  std::memcpy(header.version, "00", sizeof header.version);
  put_octal(header.sum, 6, static_cast<uint64_t>(sum_of(header)));
  header.sum[7] = ' ';
  const auto* const begin = reinterpret_cast<const std::byte*>(&header);
  archive_.insert(archive_.end(), begin, begin + kBlock);
  archive_.insert(archive_.end(), bytes.begin(), bytes.end());
  archive_.resize(archive_.size() + static_cast<size_t>(padding_of(bytes.size())));
}

Bytes TarWriter::finish() {
  archive_.resize(archive_.size() + 2 * kBlock);
  return std::move(archive_);
}

}  // namespace qkv
