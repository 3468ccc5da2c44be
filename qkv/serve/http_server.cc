// The server: libmicrohttpd's parser and event loop on one thread, routes answered by workers.
#include "qkv/serve/http_server.h"

#include <microhttpd.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cctype>
#include <list>
#include <mutex>
#include <new>
#include <optional>
#include <set>

#include "qkv/base/budget.h"
#include "qkv/base/room.h"
#include "qkv/base/utf8.h"
#include "qkv/serve/admission.h"
#include "qkv/serve/listener.h"
#include "qkv/serve/reserve.h"
#include "qkv/serve/workers.h"

namespace qkv::serve {
namespace {

using Clock = std::chrono::steady_clock;
using routes::Request;
using routes::Response;

constexpr const char* kBusy = "the server is busy; try again in a moment";
constexpr const char* kNoRoom = "the server is short of memory; try again in a moment";
constexpr size_t kRoom = 64 << 20;  // for what requests at work take besides tensors

Clock::duration seconds(double s) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
}

// A connection and what it is doing. Only the thread that speaks HTTP touches these.
struct Peer {
  enum class Phase : uint8_t { reading, working, answering, closing };
  int socket = -1;
  Phase phase = Phase::reading;
  Clock::time_point since = Clock::now();

  void enter(Phase next) {
    if (phase == Phase::closing) return;
    phase = next;
    since = Clock::now();
  }
  // The library sees the end of the stream and tidies up.
  void close() {
    phase = Phase::closing;
    ::shutdown(socket, SHUT_RDWR);
  }
};

// One request and its answer.
struct Exchange {
  std::string target;
  MHD_Connection* connection = nullptr;
  bool begun = false, last = false;  // last: of its connection
  RequestHead head;
  Request request;
  std::unique_ptr<Budget> budget;
  std::optional<Response> answer;  // a worker's, handed over by MHD_resume_connection
};

// The bytes of an answer while they are sent.
struct Body {
  std::string bytes;
  std::atomic<int64_t>* unsent;
};
void free_body(void* body) {
  auto* const b = static_cast<Body*>(body);
  *b->unsent -= static_cast<int64_t>(b->bytes.size());
  delete b;
}

MHD_Result add_to_head(void* head, MHD_ValueKind, const char* name, const char* value) {
  try {
    static_cast<RequestHead*>(head)->headers[ascii_lower(name)].emplace_back(value == nullptr ? "" : value);
    return MHD_YES;
  } catch (const std::bad_alloc&) {
    static_cast<RequestHead*>(head)->whole = false;
    return MHD_NO;
  }
}

}  // namespace

struct HttpServer::Impl {
  Impl(const HttpOptions& o, const routes::Router& r)
      : options(o),
        router(r),
        admission(o.host, o.token),
        heavy(o.computing, o.waiting, std::chrono::milliseconds(static_cast<int64_t>(o.turn_seconds * 1000))),
        light(2, 2 * o.connections, std::chrono::milliseconds(static_cast<int64_t>(o.turn_seconds * 1000))) {
    admission.set_largest_body(o.max_body);
    if (bell < 0) throw IoError("could not start the HTTP server: too many open files");
  }
  ~Impl() {
    stop_work();
    if (daemon != nullptr) {
      MHD_run(daemon);  // takes back what the workers had
      MHD_stop_daemon(daemon);
    }
    ::close(bell);
  }

  void start(int listening) {
    // A request's head must fit into what its connection has.
    const MHD_OptionItem settings[] = {{MHD_OPTION_LISTEN_SOCKET, listening, nullptr},
                                       {MHD_OPTION_CONNECTION_LIMIT, options.connections + 32, nullptr},
                                       {MHD_OPTION_CONNECTION_MEMORY_LIMIT, 32 << 10, nullptr},
                                       {MHD_OPTION_END, 0, nullptr}};
    daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, nullptr, nullptr, &on_request, this,
                              MHD_OPTION_ARRAY, settings, MHD_OPTION_NOTIFY_CONNECTION, &on_connection, this,
                              MHD_OPTION_URI_LOG_CALLBACK, &on_target, this, MHD_OPTION_NOTIFY_COMPLETED, &on_completed,
                              this, MHD_OPTION_UNESCAPE_CALLBACK, &leave_escaped, nullptr, MHD_OPTION_END);
    if (daemon == nullptr) throw IoError("could not start the HTTP server");
  }

  // ---- what the library calls -------------------------------------------------------------------------------------

  static size_t leave_escaped(void*, MHD_Connection*, char* text) { return std::char_traits<char>::length(text); }

  static void on_connection(void* self, MHD_Connection* connection, void** context,
                            MHD_ConnectionNotificationCode what) {
    auto* const impl = static_cast<Impl*>(self);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
      impl->peers.remove_if([&](const Peer& p) { return &p == *context; });
      return;
    }
    const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    try {
      impl->peers.push_back({.socket = info->connect_fd});
    } catch (const std::bad_alloc&) {
      ::shutdown(info->connect_fd, SHUT_RDWR);
      return;
    }
    *context = &impl->peers.back();
    impl->close_dawdler();
  }

  static void* on_target(void*, const char* target, MHD_Connection* connection) {
    try {
      auto exchange = std::make_unique<Exchange>();
      exchange->target = target == nullptr ? "" : target;
      exchange->connection = connection;
      return exchange.release();
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }

  static void on_completed(void*, MHD_Connection* connection, void** context, MHD_RequestTerminationCode) {
    delete static_cast<Exchange*>(*context);
    *context = nullptr;
    enter(connection, Peer::Phase::reading);
  }

  static MHD_Result on_request(void* self, MHD_Connection*, const char*, const char* method, const char* version,
                               const char* data, size_t* size, void** context) {
    auto* const impl = static_cast<Impl*>(self);
    auto* const exchange = static_cast<Exchange*>(*context);
    if (exchange == nullptr) return MHD_NO;
    try {
      if (!exchange->begun) {
        exchange->head.method = method;
        exchange->head.version = version;
        return impl->begin(*exchange);
      }
      if (*size > 0) {
        // What is refused is read to its end all the same: never is a body taken for the next request.
        if (!exchange->last) exchange->request.body.append(data, *size);
        *size = 0;
        return MHD_YES;
      }
      return impl->finish(*exchange);
    } catch (const std::exception&) {
      return MHD_NO;  // closes the connection
    }
  }

  // ---- one request ------------------------------------------------------------------------------------------------

  static void enter(MHD_Connection* connection, Peer::Phase phase) {
    const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    if (auto* const peer = static_cast<Peer*>(info->socket_context)) peer->enter(phase);
  }

  // The head is here.
  MHD_Result begin(Exchange& x) {
    constexpr size_t kReadAnyway = 4 << 20;  // of a body that is refused, so that its sender gets to see the answer
    x.begun = true;
    x.head.target = x.target;
    MHD_get_connection_values(x.connection, MHD_HEADER_KIND, &add_to_head, &x.head);
    if (!x.head.whole) return MHD_NO;
    if (const auto refusal = admission.check(x.head)) {
      x.answer = routes::error_response(refusal->status, refusal->what);
    } else {
      try {
        x.request = routes::make_request(x.head.method, x.target);
        return MHD_YES;
      } catch (const routes::RouteError& e) {
        x.answer = routes::error_response(e.status(), e.what(), e.field());
      }
    }
    x.last = true;
    const bool short_body =
        x.head.count("transfer-encoding") == 0 && Admission::body_size(x.head).value_or(kReadAnyway + 1) <= kReadAnyway;
    return short_body ? MHD_YES : send(x);
  }

  // The body is here too, or a worker's answer.
  MHD_Result finish(Exchange& x) {
    if (x.answer) return send(x);
    if (x.budget) return MHD_NO;  // not even an error could be said
    if (!have_room(kRoom)) {
      x.answer = routes::error_response(503, kNoRoom);
      return send(x);
    }
    enter(x.connection, Peer::Phase::working);
    x.budget = std::make_unique<Budget>(seconds(options.request_seconds), options.memory);
    {
      const std::lock_guard lock(mutex);
      working.insert(&x);
    }
    Workers& workers = router.work_of(x.request) == routes::Work::heavy ? heavy : light;
    MHD_suspend_connection(x.connection);
    const auto busy = [this, &x] { hand_over(x, [] { return routes::error_response(503, kBusy); }); };
    const auto work = [this, &x] {
      hand_over(x, [&] {
        const BudgetScope scope(x.budget.get());
        return router.answer(std::move(x.request));
      });
    };
    bool taken = false;
    try {
      taken = workers.offer({work, busy});
    } catch (const std::bad_alloc&) {
      taken = false;
    }
    if (!taken) busy();
    return MHD_YES;
  }

  // From a worker to the thread that speaks HTTP.
  template <class MakeAnswer>
  void hand_over(Exchange& x, MakeAnswer&& make_answer) {
    try {
      x.answer = make_answer();
    } catch (const std::exception&) {
      x.answer.reset();
    }
    {
      const std::lock_guard lock(mutex);
      working.erase(&x);
    }
    MHD_resume_connection(x.connection);
    ring();
  }

  MHD_Result send(Exchange& x) {
    enter(x.connection, Peer::Phase::answering);
    Response answer = std::move(*x.answer);
    if (unsent + static_cast<int64_t>(answer.body.size()) > options.unsent) answer = routes::error_response(503, kBusy);
    auto* const body = new Body{std::move(answer.body), &unsent};
    unsent += static_cast<int64_t>(body->bytes.size());
    MHD_Response* const response = MHD_create_response_from_buffer_with_free_callback_cls(
        body->bytes.size(), body->bytes.data(), &free_body, body);
    if (response == nullptr) {
      free_body(body);
      return MHD_NO;
    }
    MHD_add_response_header(response, "Content-Type", answer.type.c_str());
    for (const auto& [name, value] : answer.headers) MHD_add_response_header(response, name.c_str(), value.c_str());
    add_standing_headers(response, x);
    const MHD_Result result = MHD_queue_response(x.connection, static_cast<unsigned>(answer.status), response);
    MHD_destroy_response(response);
    return result;
  }

  void add_standing_headers(MHD_Response* response, const Exchange& x) const {
    // No scripts, styles, pictures or connections but the page's own (charts write style elements; exports are blobs).
    MHD_add_response_header(response, "Content-Security-Policy",
                            "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' blob: data:; "
                            "object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
    MHD_add_response_header(response, "Cross-Origin-Opener-Policy", "same-origin");
    if (x.last) {
      MHD_add_response_header(response, "Connection", "close");
    } else if (const std::string cookie = admission.cookie_for(x.head); !cookie.empty()) {
      MHD_add_response_header(response, "Set-Cookie", cookie.c_str());
    }
  }

  // Wakes the thread that speaks HTTP.
  void ring() const {
    const uint64_t one = 1;
    if (::write(bell, &one, sizeof one) < 0) return;  // it has been rung already
  }

  // Waits until there is something to do.
  void wait(int milliseconds) const {
    MHD_UNSIGNED_LONG_LONG soon = 0;
    if (MHD_get_timeout(daemon, &soon) == MHD_YES && soon < static_cast<unsigned>(milliseconds)) {
      milliseconds = static_cast<int>(soon);
    }
    const auto* info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
    pollfd watched[] = {{info->epoll_fd, POLLIN, 0}, {bell, POLLIN, 0}};
    ::poll(watched, 2, milliseconds);
    uint64_t rung = 0;
    if (watched[1].revents != 0 && ::read(bell, &rung, sizeof rung) < 0) return;
  }

  // ---- connections ------------------------------------------------------------------------------------------------

  // With too many connections, the one that has been at its request longest gives way; else one that takes its answer
  // slowly.
  void close_dawdler() {
    Peer* oldest = nullptr;
    int open = 0;
    for (Peer& p : peers) {
      if (p.phase == Peer::Phase::closing) continue;
      ++open;
      if (p.phase == Peer::Phase::working) continue;
      const auto rank = [](const Peer& q) { return std::pair(q.phase != Peer::Phase::reading, q.since); };
      if (oldest == nullptr || rank(p) < rank(*oldest)) oldest = &p;
    }
    if (open > options.connections && oldest != nullptr) oldest->close();
  }

  void close_late() {
    const auto now = Clock::now();
    for (Peer& p : peers) {
      const bool reading = p.phase == Peer::Phase::reading && now - p.since > seconds(options.read_seconds);
      const bool answering = p.phase == Peer::Phase::answering && now - p.since > seconds(options.answer_seconds);
      if (reading || answering) p.close();
    }
  }

  void cancel_work() {
    const std::lock_guard lock(mutex);
    for (Exchange* x : working) x->budget->cancel();
  }
  void stop_work() {
    cancel_work();
    heavy.stop();
    light.stop();
  }

  HttpOptions options;
  const routes::Router& router;
  Admission admission;
  std::list<Peer> peers;
  std::atomic<int64_t> unsent{0};
  std::atomic<bool> stopping{false};
  std::mutex mutex;  // of the next
  std::set<Exchange*> working;
  MHD_Daemon* daemon = nullptr;
  int bell = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  Workers heavy, light;
};

HttpServer::HttpServer(const HttpOptions& options, const routes::Router& router)
    : impl_(std::make_unique<Impl>(options, router)) {}

HttpServer::~HttpServer() = default;

int HttpServer::bind() {
  const Listener listener = listen_on(impl_->options.host, impl_->options.port);
  impl_->admission.set_port(listener.port);
  impl_->start(listener.socket);
  return listener.port;
}

void HttpServer::turn(int milliseconds) {
  impl_->wait(milliseconds);
  MHD_run(impl_->daemon);
  impl_->close_late();
  impl_->heavy.give_up_late();
  impl_->light.give_up_late();
  keep_reserve();
}

void HttpServer::run() {
  constexpr int kMilliseconds = 100;  // between two looks at the clock
  while (!impl_->stopping) turn(kMilliseconds);
  impl_->cancel_work();
}

void HttpServer::stop() {
  impl_->stopping = true;
  impl_->ring();
}

void HttpServer::adopt(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size);
  if (MHD_add_connection(impl_->daemon, socket, reinterpret_cast<sockaddr*>(&address), size) != MHD_YES) {
    throw IoError("could not serve the connection");
  }
}

}  // namespace qkv::serve
