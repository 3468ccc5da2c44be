// libFuzzer: no bytes make the safetensors reader crash or hand out a range outside the file.
#include <cstdint>
#include <cstdlib>

#include "qkv/base/error.h"
#include "qkv/io/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto bytes = std::as_bytes(std::span(data, size));
    const auto file = qkv::SafetensorsFile::parse(qkv::Bytes(bytes.begin(), bytes.end()), "fuzz");
    size_t total = 0;
    for (const qkv::Safetensor& tensor : file.tensors()) {
      total += file.bytes(tensor).size();
      if (tensor.dtype == "F32") file.f32(tensor.name, tensor.shape);
    }
    if (total > size) std::abort();
  } catch (const qkv::Error&) {
    // Refused with a message: that is what bad input should get.
  }
  return 0;
}
