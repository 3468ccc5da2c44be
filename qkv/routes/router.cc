// Parses targets, finds routes, turns errors into answers.
#include "qkv/routes/router.h"

#include <algorithm>
#include <charconv>
#include <new>

#include "qkv/base/error.h"
#include "qkv/io/json.h"

namespace qkv::routes {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// %41 → A. Throws RouteError 400 for a % without two digits, and for characters no name or value has.
std::string decoded(std::string_view text, bool plus_is_space) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i] == '+' && plus_is_space ? ' ' : text[i];
    if (c == '%') {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) throw RouteError(400, "a '%' in the address is not followed by two digits");
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (c == '\0') throw RouteError(400, "the address holds a zero byte");
    out += c;
  }
  return out;
}

std::vector<std::string> segments_of(std::string_view path) {
  std::vector<std::string> segments;
  for (size_t begin = 1; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    segments.emplace_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return segments;
}

// A name, or several with slashes between them (the id of a run), none of which leads elsewhere.
bool names_a_place(std::string_view segment) {
  for (const std::string& name : segments_of("/" + std::string(segment))) {
    if (name.empty() || name == "." || name == "..") return false;
  }
  return !segment.empty() && segment.back() != '/';
}

}  // namespace

std::string Request::get(const std::string& name, const std::string& otherwise) const {
  const auto found = query.find(name);
  return found == query.end() ? otherwise : found->second;
}

int64_t Request::get_integer(const std::string& name, int64_t otherwise) const {
  const auto found = query.find(name);
  if (found == query.end()) return otherwise;
  int64_t value = 0;
  const std::string& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw RouteError(400, "'" + text + "' is not a whole number", name);
  }
  return value;
}

Request make_request(std::string_view method, std::string_view target, std::string body) {
  if (target.empty() || target[0] != '/') throw RouteError(400, "the request names no path of this server");
  for (const char c : target) {
    if (static_cast<unsigned char>(c) <= ' ' || c == 127) throw RouteError(400, "the address holds a space");
  }
  Request r;
  r.method = method == "HEAD" ? "GET" : std::string(method);
  const size_t mark = std::min(target.find('?'), target.size());
  r.path = decoded(target.substr(0, mark), false);
  for (const std::string& segment : segments_of(target.substr(0, mark))) r.segments.push_back(decoded(segment, false));
  for (size_t begin = mark + 1; begin < target.size();) {
    const size_t end = std::min(target.find('&', begin), target.size());
    const std::string_view pair = target.substr(begin, end - begin);
    const size_t equals = std::min(pair.find('='), pair.size());
    const std::string_view value = equals < pair.size() ? pair.substr(equals + 1) : std::string_view();
    r.query[decoded(pair.substr(0, equals), true)] = decoded(value, true);
    begin = end + 1;
  }
  r.body = std::move(body);
  return r;
}

Response error_response(int status, const std::string& what, const std::string& field) {
  Json body{{"error", what}};
  if (!field.empty()) body["field"] = field;
  Response r{.status = status, .body = body.dump(-1, ' ', false, Json::error_handler_t::replace)};
  if (status == 503) r.headers.emplace_back("Retry-After", "1");
  return r;
}

void Router::add(std::string method, std::string_view pattern, Handler handler, Work work) {
  routes_.push_back({std::move(method), segments_of(pattern), std::move(handler), work});
}

const Router::Route* Router::find(const Request& request, std::vector<std::string>* parts) const {
  const std::vector<std::string>& segments = request.segments;
  for (const Route& route : routes_) {
    if (route.method != request.method || route.segments.size() != segments.size()) continue;
    std::vector<std::string> matched;
    bool good = true;
    for (size_t i = 0; i < segments.size() && good; ++i) {
      const bool any = route.segments[i] == "{}" && names_a_place(segments[i]);
      if (any) matched.push_back(segments[i]);
      good = any || route.segments[i] == segments[i];
    }
    if (!good) continue;
    if (parts != nullptr) *parts = std::move(matched);
    return &route;
  }
  return nullptr;
}

Work Router::work_of(const Request& request) const {
  const Route* route = find(request, nullptr);
  return route == nullptr ? Work::light : route->work;
}

Response Router::answer(Request request) const {
  try {
    const Route* route = find(request, &request.parts);
    if (route == nullptr) return error_response(404, "nothing at " + request.path);
    return route->handler(request);
  } catch (const RouteError& e) {
    return error_response(e.status(), e.what(), e.field());
  } catch (const ConfigError& e) {
    return error_response(400, e.what());
  } catch (const JsonError& e) {
    return error_response(400, e.what());
  } catch (const Json::exception&) {
    return error_response(400, "the request is not the JSON this route expects");
  } catch (const std::bad_alloc&) {
    return error_response(422, "not enough memory for this; use a smaller input or smaller settings");
  } catch (const std::exception& e) {
    return error_response(422, e.what());
  }
}

}  // namespace qkv::routes
