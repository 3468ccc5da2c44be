// Traced examples to and from JSON.
#include "qkv/tasks/traced_json.h"

#include "qkv/base/base64.h"
#include "qkv/base/error.h"

namespace qkv {

Json picture_json(const TracedPicture& p) {
  return {{"width", p.width},
          {"height", p.height},
          {"channels", p.channels},
          {"pixels", encode_base64(std::as_bytes(std::span(p.pixels)))},
          {"patch_rows", p.patch_rows},
          {"patch_columns", p.patch_columns},
          {"first_patch", p.first_patch}};
}

TracedPicture picture_of(const JsonObject& object, const std::string& where) {
  constexpr int64_t kMostPixels = 1 << 14;  // of an edge
  TracedPicture p;
  p.width = object.integer("width", 1, kMostPixels);
  p.height = object.integer("height", 1, kMostPixels);
  p.channels = object.integer("channels", 1, 4);
  p.patch_rows = object.integer("patch_rows", 1, p.height);
  p.patch_columns = object.integer("patch_columns", 1, p.width);
  p.first_patch = object.integer("first_patch", 0, kMostPixels);
  for (const std::byte b : decode_base64(object.text("pixels"))) p.pixels.push_back(static_cast<uint8_t>(b));
  if (static_cast<int64_t>(p.pixels.size()) != p.width * p.height * p.channels) {
    throw IoError(where + ": a picture has " + std::to_string(p.pixels.size()) +
                  " bytes, not width x height x channels");
  }
  return p;
}

Json candidates_json(const TracedExample& e) {
  Json steps = Json::array();
  for (const auto& step : e.candidates) {
    Json list = Json::array();
    for (const TracedCandidate& c : step) list.push_back({{"token", c.token}, {"p", c.probability}, {"id", c.id}});
    steps.push_back(std::move(list));
  }
  return steps;
}

}  // namespace qkv
