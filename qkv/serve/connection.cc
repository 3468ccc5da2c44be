// Connections with deadlines.
#include "qkv/serve/connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace qkv::serve {
namespace {

using Clock = std::chrono::steady_clock;

class BoundedStream final : public httplib::Stream {
 public:
  BoundedStream(socket_t socket, const ConnectionLimits& limits, const std::atomic<socket_t>& listener)
      : socket_(socket), limits_(limits), listener_(listener) {}

  /// Waits for the first byte of a request and starts its clock; false when none comes.
  bool next_request() {
    const bool here = begin_ < end_ || wait(POLLIN, Clock::now() + limits_.idle);
    read_until_ = Clock::now() + limits_.reading;
    answering_ = false;
    read_ = 0;
    return here;
  }

  bool is_readable() const override { return begin_ < end_ || wait(POLLIN, read_until_); }
  bool is_writable() const override { return wait(POLLOUT, Clock::now() + limits_.writing); }

  ssize_t read(char* to, size_t size) override {
    if (begin_ == end_ && !fill()) return -1;
    const size_t n = std::min(size, end_ - begin_);
    std::memcpy(to, buffer_.data() + begin_, n);
    begin_ += n;
    return static_cast<ssize_t>(n);
  }

  ssize_t write(const char* from, size_t size) override {
    if (!answering_) write_until_ = Clock::now() + limits_.writing;
    answering_ = true;
    for (size_t sent = 0; sent < size;) {
      if (!wait(POLLOUT, write_until_)) return -1;
      const ssize_t n = ::send(socket_, from + sent, size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0 && errno != EAGAIN && errno != EINTR) return -1;
      sent += n > 0 ? static_cast<size_t>(n) : 0;
    }
    return static_cast<ssize_t>(size);
  }

  // Nobody asks: requests are told apart by their Host and Origin.
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_; }

 private:
  bool fill() {
    if (read_ >= limits_.request_bytes || !wait(POLLIN, read_until_)) return false;
    const ssize_t n = ::recv(socket_, buffer_.data(), buffer_.size(), 0);
    if (n <= 0) return false;
    begin_ = 0;
    end_ = static_cast<size_t>(n);
    read_ += end_;
    return true;
  }

  // In short pieces, so that a server that is told to stop does.
  bool wait(short events, Clock::time_point until) const {
    constexpr auto kPiece = std::chrono::milliseconds(100);
    while (listener_ != INVALID_SOCKET) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
      if (left.count() <= 0) return false;
      pollfd watched{socket_, events, 0};
      const int ready = ::poll(&watched, 1, static_cast<int>(std::min(left, kPiece).count()));
      if (ready > 0) return (watched.revents & events) != 0;
      if (ready < 0 && errno != EINTR) return false;
    }
    return false;
  }

  socket_t socket_;
  const ConnectionLimits& limits_;
  const std::atomic<socket_t>& listener_;  // INVALID_SOCKET once the server is told to stop
  Clock::time_point read_until_, write_until_;
  bool answering_ = false;
  std::array<char, 16384> buffer_{};
  size_t begin_ = 0, end_ = 0, read_ = 0;
};

}  // namespace

void BoundedServer::widen_queue() {
  constexpr int kWaiting = 256;
  ::listen(svr_sock_, kWaiting);
}

bool BoundedServer::process_and_close_socket(socket_t socket) {
  BoundedStream stream(socket, limits_, svr_sock_);
  bool good = true, closed = false;
  for (size_t left = limits_.requests; left > 0 && good && !closed && stream.next_request(); --left) {
    // Packing an answer takes longer than sending it over the loopback.
    good = process_request(stream, left == 1, closed, [](httplib::Request& r) { r.headers.erase("Accept-Encoding"); });
  }
  ::shutdown(socket, SHUT_RDWR);
  ::close(socket);
  return good;
}

}  // namespace qkv::serve
