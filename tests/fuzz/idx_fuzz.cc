// libFuzzer: no bytes make the reader of IDX images and labels crash or break its promises.
#include "fuzz/memory_file.h"
#include "qkv/base/error.h"
#include "qkv/data/images.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static qkv::fuzz::MemoryFile images("images"), labels("labels");
  const auto [first, second] = qkv::fuzz::halves(data, size);
  images.fill(first);
  labels.fill(second);
  try {
    const qkv::ImageSet set = qkv::read_idx(images.path(), labels.path());
    qkv::fuzz::require(set.pixels.size() == static_cast<size_t>(set.size() * set.image_size()));
  } catch (const qkv::Error&) {
    // Refused with a message: that is what bad input should get.
  }
  return 0;
}
