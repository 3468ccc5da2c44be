// The API: what its routes share.
#include "qkv/routes/api.h"

#include <algorithm>
#include <cmath>

#include "qkv/base/budget.h"
#include "qkv/core/memory.h"
#include "qkv/routes/parts.h"

namespace qkv::routes {

Json request_json(const Request& request) {
  return parse_json(request.body, {.where = "the request", .what = "the JSON this route expects"});
}

Response json_response(const Json& body, int status) {
  return {.status = status,
          .body = body.dump(-1, ' ', false, Json::error_handler_t::replace),
          .headers = {{"Cache-Control", "no-store"}}};
}

std::string text_member(const Json& body, const char* name, const std::string& otherwise) {
  if (!body.is_object()) throw RouteError(400, "the request must be a JSON object");
  if (!body.contains(name) || body[name].is_null()) return otherwise;
  if (body[name].is_string()) return body[name];
  if (body[name].is_number_integer()) return std::to_string(body[name].get<int64_t>());
  throw RouteError(400, std::string("'") + name + "' must be text", name);
}

std::vector<std::pair<std::string, std::string>> settings_member(const Json& body) {
  constexpr size_t kLongest = 4096;  // of a value; they become words of a command line
  std::vector<std::pair<std::string, std::string>> out;
  if (!body.is_object()) throw RouteError(400, "the request must be a JSON object");
  if (!body.contains("settings")) return out;
  if (!body["settings"].is_object()) throw RouteError(400, "'settings' must be an object", "settings");
  for (const auto& [name, value] : body["settings"].items()) {
    if (value.is_structured()) throw RouteError(400, "a setting is a number, text or true or false", name);
    std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    const bool plain = std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < ' '; });
    if (!plain || text.size() > kLongest) {
      throw RouteError(400, "a setting is one line of at most " + std::to_string(kLongest) + " bytes", name);
    }
    out.emplace_back(name, std::move(text));
  }
  return out;
}

Json settings_json(const Settings& settings) {
  static constexpr const char* kKinds[] = {"integer", "number", "text", "flag", "choice", "path"};
  Json list = Json::array();
  for (const Setting& s : settings.all()) {
    Json one{{"name", s.name},
             {"value", s.value},
             {"help", s.help},
             {"kind", kKinds[static_cast<int>(s.kind)]},
             {"open", s.client}};
    if (std::isfinite(s.low)) one["low"] = s.low;
    if (std::isfinite(s.high)) one["high"] = s.high;
    if (!s.choices.empty()) one["choices"] = s.choices;
    if (!s.group.empty()) one["group"] = s.group;
    list.push_back(std::move(one));
  }
  return list;
}

std::unique_lock<std::timed_mutex> held(std::timed_mutex& mutex) {
  std::unique_lock lock(mutex, std::defer_lock);
  const Budget* budget = current_budget();
  if (budget == nullptr) {
    lock.lock();
  } else if (!lock.try_lock_until(budget->until())) {
    throw RouteError(503, "the server is busy; try again in a moment");
  }
  return lock;
}

bool crowded() {
  const Budget* budget = current_budget();
  return budget != nullptr && memory_use().live > budget->bytes() / 2;
}

void add_api(Router& router, const Services& services) {
  add_run_routes(router, services);
  add_trace_routes(router, services);
  add_lab_routes(router);
}

}  // namespace qkv::routes
