// libFuzzer: no text makes opening a run by its config.json crash; what opens has every setting within its limits.
#include "fuzz/memory_file.h"
#include "qkv/base/error.h"
#include "qkv/train/session.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static qkv::fuzz::MemoryFile file("config.json");
  file.fill({data, size});
  try {
    const qkv::RunFolder run = qkv::RunFolder::open(qkv::fuzz::folder());
    const qkv::TrainerOptions options = qkv::trainer_options(run.settings());
    qkv::fuzz::require(options.epochs >= 0 && options.keep >= 0);
  } catch (const qkv::Error&) {
    // Refused with a message: that is what bad input should get.
  }
  return 0;
}
