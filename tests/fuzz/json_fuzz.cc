// libFuzzer: no text makes the JSON parser crash, nor what it lets in when it is printed and read again.
#include "qkv/io/json.h"

#include "fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const qkv::Json json = qkv::parse_json(text, {.where = "fuzz"});
    const qkv::Json copy = json;
    const std::string printed = qkv::json_text(copy);
    qkv::fuzz::require(qkv::parse_json(printed, {.where = "again"}) == json);
    const qkv::JsonObject object(json, "fuzz");
    for (const auto& member : json.items()) {
      for (int getter = 0; getter < 5; ++getter) {
        try {
          const char* name = member.key().c_str();
          if (getter == 0) qkv::fuzz::require(object.integer(name, -5, 5) <= 5);
          if (getter == 1) qkv::fuzz::require(object.number(name, 0, 1) <= 1);
          if (getter == 2) object.figure(name);
          if (getter == 3) object.texts(name);
          if (getter == 4) object.object(name).figures();
        } catch (const qkv::JsonError&) {
          // Of another kind or range.
        }
      }
    }
  } catch (const qkv::JsonError&) {
    // Refused with a message: that is what bad input should get.
  }
  return 0;
}
