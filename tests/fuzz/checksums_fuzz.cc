// libFuzzer: no bytes make the reader of CHECKSUMS crash or name a file outside its folder.
#include "fuzz/memory_file.h"
#include "qkv/base/error.h"
#include "qkv/io/checksum.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static qkv::fuzz::MemoryFile file("CHECKSUMS");
  file.fill({data, size});
  try {
    qkv::Checksums::load(qkv::fuzz::folder()).check_all();
  } catch (const qkv::Error&) {
    // Refused with a message: that is what bad input should get.
  }
  return 0;
}
