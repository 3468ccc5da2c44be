// libFuzzer: no recordings make their reader crash, and of those it takes, every weight and every cell can be asked
// for.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "qkv/base/budget.h"
#include "qkv/io/json.h"
#include "qkv/tasks/recordings.h"

namespace {

using qkv::Json;

// A file of which only the JSON is the input's, and the sizes of its tensors are, so that both stay a safetensors file.
qkv::Bytes file_of(std::string_view sizes, std::string_view recordings) {
  Json header = Json::object();
  header["__metadata__"] = {{"recordings", recordings}};
  uint64_t at = 0;
  const auto add = [&](const std::string& name, std::vector<uint64_t> shape) {
    uint64_t bytes = 4;
    for (const uint64_t n : shape) bytes *= n;
    header[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {at, at + bytes}}};
    at += bytes;
  };
  const auto size = [&](size_t i) { return uint64_t{1} + static_cast<uint8_t>(sizes[i]) % 4; };
  add("0/0/q", {size(0), size(1), size(2)});
  add("0/0/k", {size(3), size(4), size(2)});
  add("0/0/v", {size(3), size(4), size(5)});
  if (sizes[6] & 1) add("0/0/mask", {size(0), size(7)});
  if (sizes[6] & 2) add("0/0/bias", {size(1), size(0), size(7)});
  if (sizes[6] & 4) add("0/0/additive", {size(2)});
  add("0/1/weights", {size(1), size(0), size(3)});
  const std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  const uint64_t length = text.size();
  qkv::Bytes file(sizeof length + text.size() + at, std::byte{0x3e});  // numbers near 0.2
  std::memcpy(file.data(), &length, sizeof length);
  std::memcpy(file.data() + sizeof length, text.data(), text.size());
  return file;
}

void ask_everything(qkv::Recordings& recordings) {
  for (const std::string& input : recordings.examples(0)) {
    const qkv::TracedExample example = recordings.trace(input);
    for (const qkv::AttentionTrace& t : example.attention) {
      for (int64_t h = 0; h < std::min<int64_t>(t.H, 4); ++h) {
        for (const qkv::ScoreStage stage : {qkv::ScoreStage::biased, qkv::ScoreStage::weights}) {
          t.scores({.h = h, .row_end = std::min<int64_t>(t.Lq, 8), .stage = stage});
        }
        if (t.cell) t.cell(0, h, t.Lq - 1, t.Lk - 1);
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kSizes = 8;
  if (size < 1 + kSizes) return 0;  // "s", the sizes, JSON; or the bytes of a whole file
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto bytes = std::as_bytes(std::span(data, size));
  const qkv::Budget budget(std::chrono::seconds(2), 64 << 20);
  const qkv::BudgetScope scope(&budget);
  try {
    qkv::Recordings recordings(
        qkv::SafetensorsFile::parse(text[0] == 's' ? file_of(text.substr(1, kSizes), text.substr(1 + kSizes))
                                                   : qkv::Bytes(bytes.begin(), bytes.end()),
                                    "it"));
    ask_everything(recordings);
  } catch (const qkv::Error&) {
    // Refused with a message: that is what bad input should get.
  }
  return 0;
}
