// libFuzzer: no bytes make the reader of recordings, or a look at what it took, crash or read beyond them.
#include <cstdint>

#include "qkv/base/error.h"
#include "qkv/tasks/recordings.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int64_t kMostCells = 1 << 16;
  try {
    const auto bytes = std::as_bytes(std::span(data, size));
    qkv::Recordings recordings(qkv::SafetensorsFile::parse(qkv::Bytes(bytes.begin(), bytes.end()), "fuzz"));
    for (const std::string& input : recordings.examples(0)) {
      for (const qkv::AttentionTrace& trace : recordings.trace(input).attention) {
        if (trace.Lq * trace.Lk > kMostCells) continue;
        trace.scores({.h = trace.H - 1, .row_end = trace.Lq});
        if (trace.cell) trace.cell(0, trace.H - 1, trace.Lq - 1, trace.Lk - 1);
      }
    }
  } catch (const qkv::Error&) {
    // Refused with a message: that is what bad input should get.
  }
  return 0;
}
