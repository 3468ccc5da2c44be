// The server: cpp-httplib underneath, with the limits and checks it does not have.
#include "qkv/serve/http_server.h"

#include <signal.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <thread>

#include "qkv/base/error.h"
#include "qkv/io/json.h"
#include "qkv/serve/connection.h"

namespace qkv::serve {
namespace {

std::string error_body(const std::string& what, const std::string& field) {
  Json body{{"error", what}};
  if (!field.empty()) body["field"] = field;
  return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Heavy handlers take turns on a few threads of their own: what a kernel keeps for its thread is kept that many times,
// not once for each connection. `waiting` handlers may wait; the others are told to come back.
class Workers {
 public:
  Workers(int computing, int waiting, double seconds) : room_(waiting), seconds_(seconds), idle_(computing) {
    // Signals are for the program that made the server.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    for (int i = 0; i < computing; ++i) threads_.emplace_back([this] { serve(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~Workers() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& t : threads_) t.join();
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Returns when the work is done, with what it threw. Throws HttpError 503 when its turn does not come.
  void run(const std::function<void()>& work) {
    Job job{&work};
    std::unique_lock lock(mutex_);
    if (static_cast<int>(jobs_.size()) >= room_ + idle_) throw HttpError(503, kBusy);
    jobs_.push_back(&job);
    changed_.notify_all();
    const auto turn = [&] { return job.begun; };
    if (!changed_.wait_for(lock, std::chrono::duration<double>(seconds_), turn)) {
      jobs_.remove(&job);
      throw HttpError(503, kBusy);
    }
    changed_.wait(lock, [&] { return job.done; });
    if (job.error) std::rethrow_exception(job.error);
  }

 private:
  struct Job {
    const std::function<void()>* work;
    bool begun = false, done = false;
    std::exception_ptr error = {};
  };
  static constexpr const char* kBusy = "the server is busy; try again in a moment";

  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      Job& job = *jobs_.front();
      jobs_.pop_front();
      job.begun = true;
      --idle_;
      lock.unlock();
      try {
        (*job.work)();
      } catch (...) {
        job.error = std::current_exception();
      }
      lock.lock();
      ++idle_;
      job.done = true;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Job*> jobs_;  // not yet begun
  int room_;
  double seconds_;
  int idle_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

HttpRequest request_of(const httplib::Request& from) {
  HttpRequest r;
  r.path = from.path;
  for (size_t i = 1; i < from.matches.size(); ++i) r.parts.push_back(from.matches[i]);
  for (const auto& [name, value] : from.params) r.query[name] = value;
  r.body = from.body;
  return r;
}

void refuse(httplib::Response& to, int status, const std::string& what, const std::string& field = "") {
  to.status = status;
  to.set_content(error_body(what, field), "application/json");
  if (status == 503) to.set_header("Retry-After", "1");
}

}  // namespace

std::string HttpRequest::get(const std::string& name, const std::string& otherwise) const {
  const auto found = query.find(name);
  return found == query.end() ? otherwise : found->second;
}

int64_t HttpRequest::get_integer(const std::string& name, int64_t otherwise) const {
  const auto found = query.find(name);
  if (found == query.end()) return otherwise;
  int64_t value = 0;
  const std::string& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw HttpError(400, "'" + text + "' is not a whole number", name);
  }
  return value;
}

ConnectionLimits limits_of(const HttpOptions& o) {
  ConnectionLimits limits;
  limits.reading = std::chrono::milliseconds(static_cast<int64_t>(o.read_seconds * 1000));
  limits.idle = std::min(limits.idle, limits.reading);
  return limits;
}

struct HttpServer::Impl {
  explicit Impl(const HttpOptions& o)
      : options(o), workers(o.computing, o.waiting, o.turn_seconds), server(limits_of(o)) {}

  // Whether a Host header names this server: loopback names, the address it listens on, and the right port.
  bool own_host(std::string host) const {
    std::transform(host.begin(), host.end(), host.begin(), [](unsigned char c) { return std::tolower(c); });
    std::string given_port;
    const size_t colon = host.rfind(':');
    if (colon != std::string::npos && host.find(']', colon) == std::string::npos) {
      given_port = host.substr(colon + 1);
      host.resize(colon);
    }
    if (!given_port.empty() && given_port != std::to_string(port)) return false;
    if (given_port.empty() && port != 80) return false;
    return host == "127.0.0.1" || host == "localhost" || host == "[::1]" || host == options.host ||
           (options.host == "0.0.0.0" && host.find_first_not_of("0123456789.") == std::string::npos);
  }

  bool own_origin(const std::string& origin) const {
    constexpr std::string_view kScheme = "http://";
    return origin.rfind(kScheme, 0) == 0 && own_host(origin.substr(kScheme.size()));
  }

  httplib::Server::Handler guarded(HttpHandler handler, Work work) {
    return [this, work, handler = std::move(handler)](const httplib::Request& from, httplib::Response& to) {
      try {
        HttpResponse answer;
        const auto respond = [&] { answer = handler(request_of(from)); };
        if (work == Work::heavy) {
          workers.run(respond);
        } else {
          respond();
        }
        to.status = answer.status;
        for (const auto& [name, value] : answer.headers) to.set_header(name, value);
        to.set_content(answer.body, answer.type.c_str());
      } catch (const HttpError& e) {
        refuse(to, e.status(), e.what(), e.field());
      } catch (const ConfigError& e) {
        refuse(to, 400, e.what());
      } catch (const JsonError& e) {
        refuse(to, 400, e.what());
      } catch (const nlohmann::json::exception&) {
        refuse(to, 400, "the request is not the JSON this route expects");
      } catch (const std::bad_alloc&) {
        refuse(to, 422, "out of memory; use a smaller input");
      } catch (const std::exception& e) {
        refuse(to, 422, e.what());
      }
    };
  }

  void check_origin() {
    server.set_pre_routing_handler([this](const httplib::Request& from, httplib::Response& to) {
      const bool foreign = from.get_header_value_count("Host") != 1 || !own_host(from.get_header_value("Host")) ||
                           (from.has_header("Origin") && !own_origin(from.get_header_value("Origin")));
      if (foreign) {
        refuse(to, 403, "requests from other sites are refused");
        return httplib::Server::HandlerResponse::Handled;
      }
      return httplib::Server::HandlerResponse::Unhandled;
    });
  }

  HttpOptions options;
  Workers workers;
  BoundedServer server;
  int port = 0;
  std::mutex state;  // of the two below
  bool stopping = false, running = false;
};

HttpServer::HttpServer(const HttpOptions& options) : impl_(std::make_unique<Impl>(options)) {
  BoundedServer& s = impl_->server;
  s.new_task_queue = [n = static_cast<size_t>(options.connections)] { return new httplib::ThreadPool(n); };
  s.set_payload_max_length(options.max_body);
  s.set_tcp_nodelay(true);
  // The library's own choice, SO_REUSEPORT, would let two servers share a port, each getting half of the requests.
  s.set_socket_options([](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  impl_->check_origin();
  // No scripts, styles, pictures or connections but the page's own (charts write style elements; exports are blobs).
  s.set_default_headers({{"Content-Security-Policy",
                          "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' blob: data:; "
                          "object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'"},
                         {"X-Content-Type-Options", "nosniff"},
                         {"Referrer-Policy", "no-referrer"}});
  s.set_error_handler([](const httplib::Request& from, httplib::Response& to) {
    if (!to.body.empty()) return;
    if (to.status == 404) refuse(to, 404, "nothing at " + from.path);
    if (to.status == 413) refuse(to, 413, "the request is larger than 1 MiB");
    if (to.body.empty()) refuse(to, to.status, "bad request");
  });
}

HttpServer::~HttpServer() { stop(); }

void HttpServer::get(const std::string& route, HttpHandler handler, Work work) {
  impl_->server.Get(route, impl_->guarded(std::move(handler), work));
}
void HttpServer::post(const std::string& route, HttpHandler handler) {
  impl_->server.Post(route, impl_->guarded(std::move(handler), Work::heavy));
}
void HttpServer::remove(const std::string& route, HttpHandler handler) {
  impl_->server.Delete(route, impl_->guarded(std::move(handler), Work::light));
}

int HttpServer::bind() {
  const HttpOptions& o = impl_->options;
  if (o.port == 0) {
    impl_->port = impl_->server.bind_to_any_port(o.host.c_str());
    if (impl_->port < 0) throw IoError("cannot listen on " + o.host + "; is that an address of this machine?");
  } else {
    if (!impl_->server.bind_to_port(o.host.c_str(), o.port)) {
      throw IoError("port " + std::to_string(o.port) + " on " + o.host +
                    " is in use or not allowed; choose another with --port N (--port 0 takes any free one)");
    }
    impl_->port = o.port;
  }
  impl_->server.widen_queue();
  return impl_->port;
}

void HttpServer::run() {
  {
    const std::lock_guard lock(impl_->state);
    if (impl_->stopping) return;
    impl_->running = true;
  }
  impl_->server.listen_after_bind();
  const std::lock_guard lock(impl_->state);
  impl_->running = false;
}

void HttpServer::stop() {
  // The library forgets a stop that comes before it has begun to listen.
  for (std::unique_lock lock(impl_->state);; lock.lock()) {
    impl_->stopping = true;
    if (!impl_->running || impl_->server.is_running()) break;
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  impl_->server.stop();
}

}  // namespace qkv::serve
