// libFuzzer: no bytes make the reader of SentencePiece models crash, nor text cut with what it accepts.
#include "fuzz/memory_file.h"
#include "qkv/base/error.h"
#include "qkv/data/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static qkv::fuzz::MemoryFile file("x.unigram.model");
  file.fill({data, size});
  try {
    const auto tokenizer = qkv::load_tokenizer(qkv::fuzz::folder(), "x");
    for (const char* text : {"Zwei Hunde laufen.", "\xEF\xBC\xA1 ß \xE2\x85\xA3 \x01\xFF", ""}) {
      const auto ids = tokenizer->encode(text);
      for (const int64_t id : ids) qkv::fuzz::require(id >= 0 && id < tokenizer->size());
      tokenizer->decode(ids);
      qkv::Rng rng(1);
      tokenizer->sample(text, 0.5, rng);
    }
  } catch (const qkv::Error&) {
    // Refused with a message: that is what bad input should get.
  }
  return 0;
}
