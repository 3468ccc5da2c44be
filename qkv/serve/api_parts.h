// What the files of the API share: JSON answers and the members of requests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "qkv/base/settings.h"
#include "qkv/io/json.h"
#include "qkv/serve/api.h"

namespace qkv::serve {

/// The body as JSON. Throws JsonError, which is answered with 400.
Json request_json(const HttpRequest& request);
HttpResponse json_response(const Json& body, int status = 200);
/// A member that is text or a whole number, as text. Throws HttpError 400 naming the field.
std::string text_member(const Json& body, const char* name, const std::string& otherwise = "");
/// The object "settings" as pairs of name and text. Throws HttpError 400.
std::vector<std::pair<std::string, std::string>> settings_member(const Json& body);
/// Each setting with value, help, kind and limits: enough to make a form of.
Json settings_json(const Settings& settings);

void add_run_routes(HttpServer& server, ModelStore& models, Trainings& trainings);
void add_trace_routes(HttpServer& server, ModelStore& models, TraceStore& traces);
void add_lab_routes(HttpServer& server);

}  // namespace qkv::serve
