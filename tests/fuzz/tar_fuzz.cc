// libFuzzer: no bytes make the reader of archives crash, read beyond them or name a file outside its folder.
#include <cstdint>
#include <cstdlib>

#include "qkv/base/error.h"
#include "qkv/io/tar.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto archive = std::as_bytes(std::span(data, size));
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
  return 0;
}
