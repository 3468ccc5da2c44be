// Who may ask: requests that another web page, another site's name or a stranger sent are refused before they are read.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace qkv::serve {

/// A request as far as its headers say; their names in lower case, each with all its values.
struct RequestHead {
  std::string method, target, version;
  std::map<std::string, std::vector<std::string>> headers;
  bool whole = true;  // false: there was no memory for some of them

  /// How often the header was sent.
  size_t count(const std::string& name) const;
  /// Its last value, or "".
  std::string_view value(const std::string& name) const;
};

struct Refusal {
  int status = 400;
  std::string what;
};

/// Whether this names the machine itself, so that nobody else can reach it.
bool is_loopback(std::string_view host);
/// 128 random bits as 32 digits. Throws Error when the system has none.
std::string random_token();

class Admission {
 public:
  /// Of a server that listens on host and port; one with a token wants it of every request.
  Admission(std::string host, std::string token) : host_(std::move(host)), token_(std::move(token)) {}
  void set_port(int port) { port_ = port; }
  void set_largest_body(size_t bytes) { largest_body_ = bytes; }

  /// Why the request is refused, if it is.
  std::optional<Refusal> check(const RequestHead& head) const;
  /// The bytes of body that follow the head; nothing when it does not say so properly.
  static std::optional<size_t> body_size(const RequestHead& head);
  /// The header that lets a browser that showed the token in an address continue without it; "" for other requests.
  std::string cookie_for(const RequestHead& head) const;

 private:
  std::optional<Refusal> check_shape(const RequestHead& head) const;
  std::optional<Refusal> check_sender(const RequestHead& head) const;
  bool own_host(std::string host) const;
  bool own_origin(std::string_view origin) const;
  bool knows_token(const RequestHead& head) const;
  std::string cookie_name() const { return "qkv-" + std::to_string(port_); }

  std::string host_, token_;
  int port_ = 0;
  size_t largest_body_ = 1 << 20;
};

}  // namespace qkv::serve
