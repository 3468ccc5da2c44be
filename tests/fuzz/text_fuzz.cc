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
    for (const std::string& line : qkv::read_lines(file.path())) {
      const qkv::LineFault fault = qkv::check_line(line, 100);
      if (fault != qkv::LineFault::none) report.add(file.path(), 1, fault);
      if (fault == qkv::LineFault::none) qkv::fuzz::require(qkv::first_invalid_utf8(line) < 0);
    }
    qkv::fuzz::require(report.summary().empty() == (report.total() == 0));
  } catch (const qkv::Error&) {
    // Refused with a message: that is what bad input should get.
  }
  return 0;
}
