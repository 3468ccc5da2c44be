// libFuzzer: no bytes make the PNG reader crash, read outside them or return a picture of another size than its pixels.
#include "fuzz/memory_file.h"
#include "qkv/base/error.h"
#include "qkv/data/images.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const qkv::Picture picture = qkv::decode_png(std::as_bytes(std::span(data, size)), "fuzz");
    qkv::fuzz::require(picture.pixels.size() == static_cast<size_t>(3 * picture.height * picture.width));
    uint64_t sum = 0;
    for (const uint8_t pixel : picture.pixels) sum += pixel;
    qkv::fuzz::require(sum <= 255 * picture.pixels.size());
  } catch (const qkv::Error&) {
    // Refused with a message: that is what bad input should get.
  }
  return 0;
}
