// cpp-httplib's server with limits on time and size that it does not have itself.
#pragma once

#include <httplib.h>

#include <array>
#include <chrono>

namespace qkv::serve {

struct ConnectionLimits {
  std::chrono::milliseconds idle{5000};      // between two requests of a connection
  std::chrono::milliseconds reading{10000};  // from a request's first byte to its last
  std::chrono::milliseconds writing{30000};  // of one answer
  size_t request_bytes = size_t{4} << 20;    // read of one request before the connection is closed
  size_t requests = 1000;                    // of one connection
};

/// A server whose connections are closed when a request or an answer takes too long, however busily it trickles.
class BoundedServer final : public httplib::Server {
 public:
  explicit BoundedServer(const ConnectionLimits& limits) : limits_(limits) {}
  /// Lets more connections wait to be accepted than the library's five. Call after binding.
  void widen_queue();

 private:
  bool process_and_close_socket(socket_t socket) override;
  ConnectionLimits limits_;
};

}  // namespace qkv::serve
