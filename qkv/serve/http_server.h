// A small HTTP server for the page: loopback by default, bounded in every way, answers in JSON or bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace qkv::serve {

struct HttpRequest {
  std::string path;
  std::vector<std::string> parts;            // what the route's (…) groups matched
  std::map<std::string, std::string> query;  // last value of each name
  std::string body;

  bool has(const std::string& name) const { return query.count(name) > 0; }
  /// The query's value, or `otherwise`. get_integer throws HttpError 400 naming the field.
  std::string get(const std::string& name, const std::string& otherwise = "") const;
  int64_t get_integer(const std::string& name, int64_t otherwise) const;
};

struct HttpResponse {
  int status = 200;
  std::string type = "application/json";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// An answer that is not 200: {"error": what, "field": field}.
class HttpError : public std::runtime_error {
 public:
  HttpError(int status, const std::string& what, std::string field = "")
      : std::runtime_error(what), status_(status), field_(std::move(field)) {}
  int status() const { return status_; }
  const std::string& field() const { return field_; }

 private:
  int status_;
  std::string field_;
};

using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

/// What a handler costs: light ones run at once, heavy ones (models, experiments) take turns.
enum class Work : uint8_t { light, heavy };

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8417;  // 0: any free one
  size_t max_body = 1 << 20;
  int connections = 96;      // served at once; more wait for a thread
  int computing = 2;         // heavy handlers at work at once
  int waiting = 48;          // heavy handlers waiting for their turn; more are told to come back (503)
  double turn_seconds = 20;  // longest wait for a turn
  double read_seconds = 10;  // a request that takes longer to arrive is given up
};

/// Routes are regular expressions over the whole path. Requests with a foreign Host or Origin get 403, bodies over
/// max_body 413, unknown paths 404, other methods 405; qkv's ConfigError becomes 400, its other errors 422.
class HttpServer {
 public:
  explicit HttpServer(const HttpOptions& options);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  void get(const std::string& route, HttpHandler handler, Work work = Work::heavy);
  void post(const std::string& route, HttpHandler handler);
  void remove(const std::string& route, HttpHandler handler);

  /// Takes the port. Throws IoError ("port 8417 is in use; …"). Returns the port.
  int bind();
  /// Serves until stop(), which may be called from any thread or signal-safe flag watcher.
  void run();
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qkv::serve
