// libFuzzer: no bytes make the readers of vocabularies (words, characters, images.json) crash, nor text read with them.
#include "fuzz/memory_file.h"
#include "qkv/base/error.h"
#include "qkv/data/knowledge.h"
#include "qkv/data/tokenizer.h"
#include "qkv/tasks/images/data.h"
#include "qkv/tasks/task.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static qkv::fuzz::MemoryFile words("x.json"), characters("vocabulary.json"), images("images.json");
  for (qkv::fuzz::MemoryFile* file : {&words, &characters, &images}) file->fill({data, size});
  const auto read = [](auto&& how) {
    try {
      how();
    } catch (const qkv::Error&) {
      // Refused with a message: that is what bad input should get.
    }
  };
  read([] {
    const auto tokenizer = qkv::load_tokenizer(qkv::fuzz::folder(), "x");
    const auto ids = tokenizer->encode("Zwei Hunde, ab.");
    for (const int64_t id : ids) qkv::fuzz::require(id >= 0 && id < tokenizer->size());
    tokenizer->decode(ids);
  });
  read([] { qkv::CharVocabulary::load(qkv::fuzz::folder()).missing_in("Where was Ä born?"); });
  read([] {
    const qkv::ImageTaskData format(qkv::find_task("images").settings(), qkv::fuzz::folder());
    qkv::fuzz::require(format.format().height > 0 && format.format().channels <= 3);
  });
  return 0;
}
