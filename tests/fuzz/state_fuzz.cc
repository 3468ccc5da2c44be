// libFuzzer: no text makes the reader of state.json crash; what it accepts is within its limits and comes back the
// same.
#include "fuzz/memory_file.h"
#include "qkv/base/error.h"
#include "qkv/train/train_state.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const qkv::TrainState s = qkv::parse_state({reinterpret_cast<const char*>(data), size}, "fuzz");
    qkv::fuzz::require(s.step >= 0 && s.epoch >= 0 && s.batch >= 0 && s.best_step <= s.step);
    const std::string text = qkv::state_text(s);
    qkv::fuzz::require(qkv::state_text(qkv::parse_state(text, "again")) == text);
  } catch (const qkv::Error&) {
    // Refused with a message: that is what bad input should get.
  }
  return 0;
}
