// Routes: a request in, a response out. No socket here: a server, a test or a page without a server may be asking.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace qkv::routes {

struct Request {
  std::string method;                        // GET, POST or DELETE
  std::string path;                          // decoded
  std::vector<std::string> segments;         // of the path, each decoded: "%2F" is a part of its segment
  std::vector<std::string> parts;            // what the route's {} matched
  std::map<std::string, std::string> query;  // last value of each name
  std::string body;

  /// The query's value, or `otherwise`. get_integer throws RouteError 400 naming the field.
  std::string get(const std::string& name, const std::string& otherwise = "") const;
  int64_t get_integer(const std::string& name, int64_t otherwise) const;
};

/// The request for "/api/runs/a%20b?from=3". HEAD is GET. Throws RouteError 400 for a target that is not a path.
Request make_request(std::string_view method, std::string_view target, std::string body = "");

struct Response {
  int status = 200;
  std::string type = "application/json";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// An answer that is not 200: {"error": what, "field": field}.
class RouteError : public std::runtime_error {
 public:
  RouteError(int status, const std::string& what, std::string field = "")
      : std::runtime_error(what), status_(status), field_(std::move(field)) {}
  int status() const { return status_; }
  const std::string& field() const { return field_; }

 private:
  int status_;
  std::string field_;
};

Response error_response(int status, const std::string& what, const std::string& field = "");

using Handler = std::function<Response(const Request&)>;

/// What a handler costs: light ones run at once, heavy ones (models, experiments) take turns.
enum class Work : uint8_t { light, heavy };

/// The table of routes. A pattern is a path whose segments {} match any one segment: "/api/runs/{}/metrics".
class Router {
 public:
  void add(std::string method, std::string_view pattern, Handler handler, Work work = Work::heavy);

  /// What answering will cost; light where there is no such route.
  Work work_of(const Request& request) const;
  /// Never throws: a ConfigError is answered with 400, unknown paths with 404, qkv's other errors and a lack of memory
  /// with 422.
  Response answer(Request request) const;

 private:
  struct Route {
    std::string method;
    std::vector<std::string> segments;
    Handler handler;
    Work work;
  };
  const Route* find(const Request& request, std::vector<std::string>* parts) const;
  std::vector<Route> routes_;
};

}  // namespace qkv::routes
