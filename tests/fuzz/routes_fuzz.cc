// libFuzzer: no request makes a route crash, hang or answer with anything but a status and, on errors, one sentence.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "qkv/base/budget.h"
#include "qkv/io/json.h"
#include "tiny_run.h"

namespace {

void require(bool promise) {
  if (!promise) std::abort();
}

// Up to the next end of line, which is taken away too.
std::string_view line_of(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

const qkv::testing::TinySite& site() {
  static const qkv::testing::TinySite made;
  return made;
}

}  // namespace

// Training takes longer than an input may.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  site();
  return 0;
}

// "METHOD\nTARGET\nBODY"; several requests follow each other after a line "--", and @ in a target is the last trace's
// id.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string trace = "0";
  const qkv::testing::TinySite& tiny = site();  // without libFuzzer nobody has made it; not within a request's budget
  for (int requests = 0; !text.empty() && requests < 4; ++requests) {
    const std::string_view method = line_of(text);
    std::string target(line_of(text));
    if (const size_t at = target.find('@'); at != std::string::npos) target.replace(at, 1, trace);
    const size_t end = std::min(text.find("\n--\n"), text.size());
    const std::string body(text.substr(0, end));
    text.remove_prefix(std::min(end + 4, text.size()));
    const qkv::Budget budget(std::chrono::milliseconds(200), 64 << 20);
    const qkv::BudgetScope scope(&budget);
    try {
      const qkv::routes::Response r = tiny.router.answer(qkv::routes::make_request(method, target, body));
      require(r.status >= 200 && r.status < 600);
      if (r.status >= 400) {
        const qkv::Json answer = qkv::parse_json(r.body, {.where = "answer"});
        require(answer.at("error").is_string() && !answer.at("error").get<std::string>().empty());
      } else if (target == "/api/trace") {
        trace = qkv::parse_json(r.body, {.where = "answer"}).at("id");
      }
    } catch (const qkv::routes::RouteError& e) {
      require(e.status() == 400);  // a target that is no path
    }
  }
  return 0;
}
