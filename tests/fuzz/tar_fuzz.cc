// libFuzzer: no bytes make the reader of archives crash, read beyond them or name a file outside its folder.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "qkv/base/error.h"
#include "qkv/io/tar.h"

namespace {

// The sums of headers would refuse nearly every change: they are made right, where each header begins after the last
// file.
std::string with_sums(std::string tar) {
  constexpr size_t kBlock = 512, kSize = 124, kSum = 148;
  for (size_t at = 0; at + kBlock <= tar.size();) {
    if (tar.compare(at, kBlock, std::string(kBlock, '\0')) == 0) break;
    tar.replace(at + kSum, 8, 8, ' ');
    unsigned sum = 0;
    for (size_t i = 0; i < kBlock; ++i) sum += static_cast<uint8_t>(tar[at + i]);
    char digits[8];
    std::snprintf(digits, sizeof digits, "%06o", sum);
    tar.replace(at + kSum, 7, digits, 7);
    const size_t bytes = std::strtoull(tar.substr(at + kSize, 11).c_str(), nullptr, 8);
    if (bytes > tar.size()) break;
    at += kBlock + (bytes + kBlock - 1) / kBlock * kBlock;
  }
  return tar;
}

void read(std::string_view bytes) {
  const size_t size = bytes.size();
  try {
    const auto archive = qkv::bytes_of(bytes);
    qkv::TarWriter writer;
    for (const qkv::TarFile& file : qkv::parse_tar(archive, "fuzz")) {
      const bool inside = file.bytes.empty() || (file.bytes.data() >= archive.data() &&
                                                 file.bytes.data() + file.bytes.size() <= archive.data() + size);
      if (!inside || ("/" + file.name + "/").find("/../") != std::string::npos || file.name[0] == '/') std::abort();
      writer.add(file.name, file.bytes);
    }
    qkv::parse_tar(writer.finish(), "again");
  } catch (const qkv::Error&) {
    // Refused with a message: that is what bad input should get.
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  read(bytes);
  read(with_sums(bytes));
  return 0;
}
