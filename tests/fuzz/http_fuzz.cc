// libFuzzer: bytes over a socket into the real server. Whatever comes, it answers or closes, keeps serving, and a
// request that does not name this server as its host is never carried out.
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "qkv/serve/http_server.h"

namespace {

using qkv::routes::Request;
using qkv::routes::Response;
using qkv::routes::Work;

void require(bool promise) {
  if (!promise) std::abort();
}

struct Server {
  Server() {
    router.add(
        "GET", "/", [](const Request&) { return Response{.body = "page"}; }, Work::light);
    router.add("POST", "/post", [this](const Request& r) {
      ++posted;
      return Response{.body = r.body};
    });
    router.add("GET", "/{}/x", [](const Request& r) { return Response{.body = r.parts[0] + r.get("a")}; });
    qkv::serve::HttpOptions options;
    options.port = 0;
    options.read_seconds = 0.05;  // a request that is not complete is not waited for
    server = std::make_unique<qkv::serve::HttpServer>(options, router);
    port = server->bind();
  }
  qkv::routes::Router router;
  std::unique_ptr<qkv::serve::HttpServer> server;
  std::atomic<int> posted{0};
  int port = 0;
};

// Everything the server says until it closes.
std::string talk(Server& s, std::string_view bytes) {
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  s.server->adopt(ends[0]);
  std::string received;
  char part[4096];
  for (int turns = 0; turns < 400; ++turns) {
    if (!bytes.empty()) {
      const ssize_t n = ::send(ends[1], bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n > 0) bytes.remove_prefix(static_cast<size_t>(n));
      if (bytes.empty()) ::shutdown(ends[1], SHUT_WR);
    }
    s.server->turn(1);
    const ssize_t n = ::recv(ends[1], part, sizeof part, MSG_DONTWAIT);
    if (n > 0) received.append(part, static_cast<size_t>(n));
    if (n == 0) break;
  }
  ::close(ends[1]);
  s.server->turn(0);
  return received;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Server server;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // Without the name of this server and its port, which no fuzzer guesses, nothing may be carried out …
  const int before = server.posted;
  const std::string plain = talk(server, bytes);
  require(server.posted == before);
  require(plain.find("HTTP/1.1 200") == std::string::npos);
  // … and with them in place of @ the routes are reached.
  std::string named(bytes);
  const std::string host = "127.0.0.1:" + std::to_string(server.port);
  for (size_t at = named.find('@'); at != std::string::npos; at = named.find('@', at + host.size())) {
    named.replace(at, 1, host);
    if (named.size() > (1 << 16)) break;
  }
  talk(server, named);
  require(talk(server, "GET / HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n").find("page") !=
          std::string::npos);
  return 0;
}
