// The API: what its routes share.
#include "qkv/serve/api.h"

#include <cmath>

#include "qkv/serve/api_parts.h"

namespace qkv::serve {

Json request_json(const HttpRequest& request) {
  return parse_json(request.body, {.where = "the request", .what = "the JSON this route expects"});
}

HttpResponse json_response(const Json& body, int status) {
  return {.status = status,
          .body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
          .headers = {{"Cache-Control", "no-store"}}};
}

std::string text_member(const Json& body, const char* name, const std::string& otherwise) {
  if (!body.is_object()) throw HttpError(400, "the request must be a JSON object");
  if (!body.contains(name) || body[name].is_null()) return otherwise;
  if (body[name].is_string()) return body[name];
  if (body[name].is_number_integer()) return std::to_string(body[name].get<int64_t>());
  throw HttpError(400, std::string("'") + name + "' must be text", name);
}

std::vector<std::pair<std::string, std::string>> settings_member(const Json& body) {
  std::vector<std::pair<std::string, std::string>> out;
  if (!body.is_object() || !body.contains("settings")) return out;
  if (!body["settings"].is_object()) throw HttpError(400, "'settings' must be an object", "settings");
  for (const auto& [name, value] : body["settings"].items()) {
    out.emplace_back(name, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return out;
}

Json settings_json(const Settings& settings) {
  static constexpr const char* kKinds[] = {"integer", "number", "text", "flag", "choice", "path"};
  Json list = Json::array();
  for (const Setting& s : settings.all()) {
    Json one{{"name", s.name}, {"value", s.value}, {"help", s.help}, {"kind", kKinds[static_cast<int>(s.kind)]}};
    if (std::isfinite(s.low)) one["low"] = s.low;
    if (std::isfinite(s.high)) one["high"] = s.high;
    if (!s.choices.empty()) one["choices"] = s.choices;
    list.push_back(std::move(one));
  }
  return list;
}

void add_api(HttpServer& server, ModelStore& models, TraceStore& traces, Trainings& trainings) {
  add_run_routes(server, models, trainings);
  add_trace_routes(server, models, traces);
  add_lab_routes(server);
}

}  // namespace qkv::serve
