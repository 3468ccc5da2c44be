// libFuzzer: no bytes make the .npy reader crash, over-allocate or break its promises.
#include <cstdint>
#include <cstdlib>

#include "qkv/base/error.h"
#include "qkv/io/npy.h"

namespace {

void require(bool promise) {
  if (!promise) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const qkv::NpyArray array = qkv::parse_npy(std::as_bytes(std::span(data, size)), "fuzz");
    const auto count = static_cast<size_t>(array.shape.numel());
    require(array.data.size() == count * qkv::item_size(array.type) && array.data.size() <= size);
    require(array.to_f32().size() == count && array.to_f64().size() == count);
    const qkv::NpyArray again = qkv::parse_npy(qkv::encode_npy(array.shape, array.type, array.data), "again");
    require(again.shape == array.shape && again.type == array.type && again.data == array.data);
    require(array.to_i64().size() == count && array.to_bool().size() == count);
  } catch (const qkv::Error&) {
    // Refused with a message: that is what bad input should get.
  }
  return 0;
}
