// A raw client: sends bytes as they are and keeps what comes back, so that bad requests can be written.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>

namespace qkv::testing {

class RawClient {
 public:
  explicit RawClient(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  ~RawClient() { ::close(socket_); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return connected_; }

  /// False once the other side has closed.
  bool send(const std::string& bytes) {
    size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t n = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return false;
      sent += static_cast<size_t>(n);
    }
    return true;
  }

  /// Everything until the other side closes, or until nothing has come for `seconds`.
  std::string receive(double seconds = 20) {
    std::string all;
    char part[4096];
    pollfd watched{socket_, POLLIN, 0};
    while (::poll(&watched, 1, static_cast<int>(seconds * 1000)) > 0) {
      const ssize_t n = ::recv(socket_, part, sizeof part, 0);
      if (n <= 0) {
        closed_ = true;
        break;
      }
      all.append(part, static_cast<size_t>(n));
    }
    return all;
  }
  bool closed() const { return closed_; }
  /// Waits for the first bytes of an answer and leaves them where they are.
  bool has_answer() const {
    pollfd watched{socket_, POLLIN, 0};
    return ::poll(&watched, 1, 20000) > 0;
  }

 private:
  int socket_;
  bool connected_ = false, closed_ = false;
};

/// Status of an answer's first line; 0 when there is none.
inline int status_of(const std::string& answer) {
  return answer.rfind("HTTP/1.1 ", 0) == 0 ? std::stoi(answer.substr(9, 3)) : 0;
}
inline std::string body_of(const std::string& answer) {
  const size_t at = answer.find("\r\n\r\n");
  return at == std::string::npos ? "" : answer.substr(at + 4);
}

/// How many answers there are in what came back.
inline int answers_in(const std::string& received) {
  int n = 0;
  for (size_t at = received.find("HTTP/1.1 "); at != std::string::npos; at = received.find("HTTP/1.1 ", at + 1)) ++n;
  return n;
}

/// One request on its own connection; `headers` are whole lines.
inline std::string ask(int port, const std::string& line, const std::string& body = "", const std::string& headers = "",
                       const std::string& host = "") {
  RawClient client(port);
  client.send(
      line + " HTTP/1.1\r\nHost: " + (host.empty() ? "127.0.0.1:" + std::to_string(port) : host) +
      "\r\nConnection: close\r\n" + headers +
      (body.empty() || headers.find("Content-Type") != std::string::npos ? "" : "Content-Type: application/json\r\n") +
      (body.empty() ? "" : "Content-Length: " + std::to_string(body.size()) + "\r\n") + "\r\n" + body);
  return client.receive();
}

}  // namespace qkv::testing
