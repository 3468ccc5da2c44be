// libFuzzer: no text makes the readers of metrics.jsonl crash or loop forever.
#include <nlohmann/json.hpp>

#include "fuzz/memory_file.h"
#include "qkv/base/error.h"
#include "qkv/train/metrics_log.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static qkv::fuzz::MemoryFile file("metrics.jsonl");
  file.fill({data, size});
  const qkv::MetricsPart part = qkv::MetricsLog::part(qkv::fuzz::folder(), 0);
  qkv::fuzz::require(part.next <= static_cast<int64_t>(size) && !part.more);
  try {
    for (const qkv::EvaluationRecord& r : qkv::MetricsLog::evaluations(qkv::fuzz::folder(), size)) {
      qkv::fuzz::require(r.step >= 0 && r.epoch >= 0);
    }
  } catch (const qkv::Error&) {
    // Refused with a message: that is what bad input should get.
  }
  return 0;
}
