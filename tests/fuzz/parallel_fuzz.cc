// libFuzzer: no bytes make the reader of parallel text crash or return pairs of different numbers of lines.
#include "fuzz/memory_file.h"
#include "qkv/base/error.h"
#include "qkv/data/parallel_corpus.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static qkv::fuzz::MemoryFile source("x.de"), target("x.en");
  const auto [first, second] = qkv::fuzz::halves(data, size);
  source.fill(first);
  target.fill(second);
  try {
    qkv::LineReport report;
    const qkv::ParallelSet set = qkv::read_parallel({"x", source.path(), target.path()}, 50, report);
    qkv::fuzz::require(set.source.size() == set.target.size() && set.source.size() == set.numbers.size());
  } catch (const qkv::Error&) {
    // Refused with a message: that is what bad input should get.
  }
  return 0;
}
