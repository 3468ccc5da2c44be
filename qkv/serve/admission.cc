// The checks of a request's head.
#include "qkv/serve/admission.h"

#include <arpa/inet.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "qkv/base/error.h"
#include "qkv/base/utf8.h"

namespace qkv::serve {
namespace {

// The time does not tell how much of the token was right.
bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

bool is_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    return inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), bytes.data()) == 1;
  }
  return inet_pton(AF_INET, host.c_str(), bytes.data()) == 1;
}

// What HTTP takes for a name.
bool is_token(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           (std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos);
  });
}

// A header that goes on in a second line is joined to its name by some libraries ("transfer-encodingchunked"): what it
// says would not be seen here.
bool is_joined(std::string_view name) {
  constexpr std::string_view kJudged[] = {
      "host",           "origin",         "cookie",       "sec-fetch-site",   "sec-fetch-mode",
      "sec-fetch-dest", "content-length", "content-type", "content-encoding", "transfer-encoding"};
  return std::any_of(std::begin(kJudged), std::end(kJudged), [&](std::string_view judged) {
    return name.size() > judged.size() && name.substr(0, judged.size()) == judged;
  });
}

// The value of `name` in "a=1; b=2", between separators.
std::string_view named_part(std::string_view text, std::string_view name, char separator) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
    if (part.size() > name.size() && part.substr(0, name.size()) == name && part[name.size()] == '=') {
      return part.substr(name.size() + 1);
    }
  }
  return {};
}

std::string_view token_in_target(std::string_view target) {
  const size_t mark = target.find('?');
  return mark == std::string_view::npos ? std::string_view() : named_part(target.substr(mark + 1), "token", '&');
}

}  // namespace

size_t RequestHead::count(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? 0 : found->second.size();
}

std::string_view RequestHead::value(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string_view() : found->second.back();
}

bool is_loopback(std::string_view host) {
  const std::string name(host);
  in_addr v4{};
  if (inet_pton(AF_INET, name.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  return name == "localhost" || name == "::1";
}

std::string random_token() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw Error("the system gives no random numbers for the link's token");
  }
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const unsigned char b : bytes) {
    out += kDigits[b >> 4];
    out += kDigits[b & 15];
  }
  return out;
}

// Loopback names, the address it listens on, and the right port: a site whose name was made to point here has another.
bool Admission::own_host(std::string host) const {
  host = ascii_lower(host);
  std::string port;
  const size_t colon = host.rfind(':');
  if (colon != std::string::npos && host.find(']', colon) == std::string::npos) {
    port = host.substr(colon + 1);
    host.resize(colon);
  }
  if (port != std::to_string(port_) && !(port.empty() && port_ == 80)) return false;
  const bool everywhere = host_ == "0.0.0.0" || host_ == "::";
  return host == "127.0.0.1" || host == "localhost" || host == "[::1]" || host == ascii_lower(host_) ||
         host == "[" + ascii_lower(host_) + "]" || (everywhere && is_address(host));
}

bool Admission::own_origin(std::string_view origin) const {
  constexpr std::string_view kScheme = "http://";
  return origin.substr(0, kScheme.size()) == kScheme && own_host(std::string(origin.substr(kScheme.size())));
}

bool Admission::knows_token(const RequestHead& head) const {
  return same_secret(token_in_target(head.target), token_) ||
         same_secret(named_part(head.value("cookie"), cookie_name(), ';'), token_);
}

std::optional<size_t> Admission::body_size(const RequestHead& head) {
  if (head.count("content-length") == 0) return 0;
  const std::string_view text = head.value("content-length");
  size_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  const bool whole = error == std::errc() && end == text.data() + text.size() && text[0] != '-' && text[0] != '+';
  return whole && head.count("content-length") == 1 ? std::optional(size) : std::nullopt;
}

// What kind of request it is: the plainest kind only.
std::optional<Refusal> Admission::check_shape(const RequestHead& head) const {
  if (head.version != "HTTP/1.1" && head.version != "HTTP/1.0") return Refusal{505, "only HTTP/1.0 and 1.1 are spoken"};
  if (head.method != "GET" && head.method != "HEAD" && head.method != "POST" && head.method != "DELETE") {
    return Refusal{405, "the methods are GET, HEAD, POST and DELETE"};
  }
  // "Content-Length : 5" is another header to the parser here than to one that may have passed it on.
  if (std::any_of(head.headers.begin(), head.headers.end(), [](const auto& h) { return !is_token(h.first); })) {
    return Refusal{400, "a header's name holds a space or another character that no name has"};
  }
  if (std::any_of(head.headers.begin(), head.headers.end(), [](const auto& h) { return is_joined(h.first); })) {
    return Refusal{400, "a header goes on in a second line; send each in one"};
  }
  if (head.target.empty() || head.target[0] != '/') return Refusal{400, "the request names no path of this server"};
  if (head.count("transfer-encoding") > 0) return Refusal{411, "send a body in one piece, with its Content-Length"};
  const std::optional<size_t> size = body_size(head);
  if (!size) return Refusal{400, "the Content-Length is not one whole number"};
  if (*size > largest_body_) {
    return Refusal{413, "the request has " + std::to_string(*size) + " bytes; at most " +
                            std::to_string(largest_body_) + " are taken"};
  }
  if (head.count("content-encoding") > 0) return Refusal{415, "compressed bodies are not taken"};
  // A form of another page can send text/plain without asking first, but not this.
  const std::string type = ascii_lower(head.value("content-type"));
  const bool json = type == "application/json" || type.rfind("application/json;", 0) == 0;
  if ((*size > 0 || head.count("content-type") > 0) && (!json || head.count("content-type") != 1)) {
    return Refusal{415, "send JSON, with the header Content-Type: application/json"};
  }
  if (*size > 0 && head.method != "POST") return Refusal{400, "only POST has a body"};
  return std::nullopt;
}

// A browser says on whose behalf it asks: only the page itself may, and a person who follows a link to it.
std::optional<Refusal> Admission::check_sender(const RequestHead& head) const {
  const Refusal foreign{403, "requests from other sites are refused"};
  if (head.count("host") != 1 || !own_host(std::string(head.value("host")))) return foreign;
  if (head.count("origin") > 1 || (head.count("origin") == 1 && !own_origin(head.value("origin")))) return foreign;
  const std::string_view site = head.value("sec-fetch-site");
  // "/%61pi" is /api too.
  const std::string_view path = std::string_view(head.target).substr(0, head.target.find('?'));
  const bool page = path.rfind("/api", 0) != 0 && path.find('%') == std::string_view::npos;
  const bool link = page && head.method == "GET" && head.value("sec-fetch-mode") == "navigate" &&
                    head.value("sec-fetch-dest") == "document";
  if (!site.empty() && site != "same-origin" && site != "none" && !link) return foreign;
  if (!token_.empty() && !knows_token(head)) {
    return Refusal{403, "open the link that 'qkv serve' printed: its token is missing or wrong"};
  }
  return std::nullopt;
}

std::optional<Refusal> Admission::check(const RequestHead& head) const {
  if (auto refusal = check_sender(head)) return refusal;
  return check_shape(head);
}

std::string Admission::cookie_for(const RequestHead& head) const {
  if (token_.empty() || !same_secret(token_in_target(head.target), token_)) return "";
  return cookie_name() + "=" + token_ + "; Path=/; HttpOnly; SameSite=Strict";
}

}  // namespace qkv::serve
