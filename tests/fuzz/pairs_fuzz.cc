// libFuzzer: no bytes make the readers of questions, documents and their vocabulary crash.
#include "fuzz/memory_file.h"
#include "qkv/base/error.h"
#include "qkv/base/utf8.h"
#include "qkv/data/knowledge.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static qkv::fuzz::MemoryFile file("pairs.tsv");
  file.fill({data, size});
  const auto read = [](auto&& how) {
    try {
      how();
    } catch (const qkv::Error&) {
      // Refused with a message: that is what bad input should get.
    }
  };
  read([&] {
    for (const qkv::Fact& fact : qkv::read_facts(file.path())) {
      qkv::fuzz::require(qkv::first_invalid_utf8(fact.question) < 0 && qkv::first_invalid_utf8(fact.place) < 0);
    }
  });
  read([&] { qkv::read_questions(file.path()); });
  read([&] { qkv::read_documents(file.path()); });
  return 0;
}
