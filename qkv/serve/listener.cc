// Resolving, binding, listening.
#include "qkv/serve/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "qkv/base/error.h"

namespace qkv::serve {
namespace {

int port_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  if (address.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

Listener listen_on(const std::string& host, int port) {
  constexpr int kWaiting = 256;  // connections not yet accepted
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found) != 0) {
    throw IoError("cannot listen on " + host + "; is that an address of this machine?");
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(found, &::freeaddrinfo);
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    const int s = ::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
    if (s < 0) continue;
    // Not SO_REUSEPORT: two servers would share a port, each getting half of the requests.
    const int yes = 1;
    ::setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (::bind(s, a->ai_addr, a->ai_addrlen) == 0 && ::listen(s, kWaiting) == 0) return {s, port_of(s)};
    ::close(s);
  }
  if (port == 0) throw IoError("cannot listen on " + host + "; is that an address of this machine?");
  throw IoError("port " + std::to_string(port) + " on " + host +
                " is in use or not allowed; choose another with --port N (--port 0 takes any free one)");
}

}  // namespace qkv::serve
