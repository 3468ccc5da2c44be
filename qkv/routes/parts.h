// What the files of the API share: JSON answers, the members of requests, and waiting within a request's budget.
#pragma once

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "qkv/base/settings.h"
#include "qkv/io/json.h"
#include "qkv/routes/api.h"

namespace qkv::routes {

/// The body as JSON. Throws JsonError, which is answered with 400.
Json request_json(const Request& request);
Response json_response(const Json& body, int status = 200);
/// A member that is text or a whole number, as text. Throws RouteError 400 naming the field.
std::string text_member(const Json& body, const char* name, const std::string& otherwise = "");
/// The object "settings" as pairs of name and text. Throws RouteError 400.
std::vector<std::pair<std::string, std::string>> settings_member(const Json& body);
/// Each setting with value, help, kind and limits: enough to make a form of.
Json settings_json(const Settings& settings);

/// Holds the mutex; throws RouteError 503 when that does not happen before the request's time is up.
std::unique_lock<std::timed_mutex> held(std::timed_mutex& mutex);

/// Whether tensors hold half of what this request may fill: then what is kept for later is forgotten first.
bool crowded();

void add_run_routes(Router& router, const Services& services);
void add_trace_routes(Router& router, const Services& services);
void add_lab_routes(Router& router);

}  // namespace qkv::routes
