// libFuzzer: no bytes make the reader of plain and gzip text crash, hang or unpack without end.
#include "fuzz/memory_file.h"
#include "qkv/base/error.h"
#include "qkv/base/utf8.h"
#include "qkv/data/text_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static qkv::fuzz::MemoryFile file("text");
  file.fill({data, size});
  constexpr uint64_t kMost = 1 << 20;
  try {
    qkv::fuzz::require(qkv::read_plain_or_gz(file.path(), kMost).size() <= kMost);
    qkv::LineReport report;
    const qkv::TextFile text = qkv::read_text_file(file.path(), 100, report);
    qkv::fuzz::require(text.lines.size() == text.numbers.size());
    for (const std::string& line : text.lines) qkv::fuzz::require(qkv::first_invalid_utf8(line) < 0);
    qkv::fuzz::require(report.summary().empty() == (report.total() == 0));
  } catch (const qkv::Error&) {
    // Refused with a message: that is what bad input should get.
  }
  return 0;
}
