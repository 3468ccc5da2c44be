// The server against clients that are rude, slow or many.
#include "qkv/serve/http_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "http_client.h"
#include "qkv/base/budget.h"
#include "qkv/serve/admission.h"

namespace qkv::serve {
namespace {

using routes::Request;
using routes::Response;
using routes::Work;
using testing::answers_in;
using testing::ask;
using testing::body_of;
using testing::RawClient;
using testing::status_of;

/// A server with a few routes on a port of its own.
class HttpServerTest : public ::testing::Test {
 protected:
  static HttpOptions options() {
    HttpOptions o;
    o.port = 0;
    o.read_seconds = 0.6;
    o.computing = 1;
    o.waiting = 2;
    o.turn_seconds = 5;
    o.request_seconds = 3;
    return o;
  }

  void SetUp() override {
    router_.add(
        "GET", "/light", [](const Request&) { return Response{.body = "1"}; }, Work::light);
    router_.add("GET", "/slow", [this](const Request&) {
      ++started_;
      while (!go_on_) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      return Response{.body = "2"};
    });
    router_.add("GET", "/endless", [this](const Request&) -> Response {
      ++started_;
      for (;;) check_budget();
    });
    router_.add("GET", "/number",
                [](const Request& r) { return Response{.body = std::to_string(r.get_integer("n", 7))}; });
    router_.add("GET", "/wrong", [](const Request&) -> Response { throw ConfigError("no such letter 'x'"); });
    router_.add("GET", "/full", [](const Request&) -> Response { throw std::bad_alloc(); });
    router_.add("GET", "/large", [](const Request&) { return Response{.body = std::string(40 << 20, 'x')}; });
    router_.add("POST", "/echo", [this](const Request& r) {
      ++posted_;
      return Response{.type = "text/plain", .body = r.body};
    });
    start(options());
  }
  void start(const HttpOptions& o) {
    server_ = std::make_unique<HttpServer>(o, router_);
    port_ = server_->bind();
    thread_ = std::thread([this] { server_->run(); });
  }
  void end() {
    go_on_ = true;
    server_->stop();
    thread_.join();
    server_.reset();
  }
  void TearDown() override {
    if (server_) end();
  }
  void expect_alive() const { EXPECT_EQ(body_of(ask(port_, "GET /light")), "1"); }
  std::string host() const { return "127.0.0.1:" + std::to_string(port_); }

  routes::Router router_;
  std::unique_ptr<HttpServer> server_;
  std::atomic<bool> go_on_{false};
  std::atomic<int> started_{0}, posted_{0};
  int port_ = 0;
  std::thread thread_;
};

TEST_F(HttpServerTest, AnswersAndNamesTheFieldThatIsWrong) {
  EXPECT_EQ(body_of(ask(port_, "GET /number?n=41")), "41");
  EXPECT_EQ(body_of(ask(port_, "GET /number")), "7");
  const std::string bad = ask(port_, "GET /number?n=4x");
  EXPECT_EQ(status_of(bad), 400);
  EXPECT_EQ(body_of(bad), R"({"error":"'4x' is not a whole number","field":"n"})");
  const std::string refused = ask(port_, "GET /wrong");
  EXPECT_EQ(status_of(refused), 400);
  EXPECT_EQ(body_of(refused), R"({"error":"no such letter 'x'"})");
  EXPECT_EQ(status_of(ask(port_, "GET /full")), 422);
  expect_alive();
}

TEST_F(HttpServerTest, UnknownPathsAndMethods) {
  EXPECT_EQ(status_of(ask(port_, "GET /nothing")), 404);
  EXPECT_EQ(body_of(ask(port_, "GET /nothing")), R"({"error":"nothing at /nothing"})");
  EXPECT_EQ(status_of(ask(port_, "DELETE /light")), 404);
  EXPECT_EQ(status_of(ask(port_, "GET /../../etc/passwd")), 404);
  EXPECT_EQ(status_of(ask(port_, "GET /%2e%2e/%2e%2e/etc/passwd")), 404);
  EXPECT_EQ(status_of(ask(port_, "GET /light/..")), 404);
  expect_alive();
}

TEST_F(HttpServerTest, ForeignHostsAndOriginsAreRefused) {
  const std::string port = std::to_string(port_);
  EXPECT_EQ(status_of(ask(port_, "GET /light", "", "", "example.org")), 403);
  EXPECT_EQ(status_of(ask(port_, "GET /light", "", "", "example.org:" + port)), 403);
  EXPECT_EQ(status_of(ask(port_, "GET /light", "", "", "127.0.0.1:1")), 403);
  EXPECT_EQ(status_of(ask(port_, "GET /light", "", "", "127.0.0.1.example.org:" + port)), 403);
  EXPECT_EQ(status_of(ask(port_, "GET /light", "", "Host: example.org\r\n")), 403);
  EXPECT_EQ(status_of(ask(port_, "POST /echo", "x", "Origin: http://example.org\r\n")), 403);
  EXPECT_EQ(status_of(ask(port_, "POST /echo", "x", "Origin: null\r\n")), 403);
  EXPECT_EQ(status_of(ask(port_, "POST /echo", "x", "Origin: https://127.0.0.1:" + port + "\r\n")), 403);
  EXPECT_EQ(status_of(ask(port_, "POST /echo", "x", "Origin: http://127.0.0.1:" + port + "\r\n")), 200);
  EXPECT_EQ(status_of(ask(port_, "GET /light", "", "", "LOCALHOST:" + port)), 200);
}

TEST_F(HttpServerTest, TooLargeOrNoHttpAtAll) {
  EXPECT_EQ(status_of(ask(port_, "POST /echo", std::string(1 << 20, 'x'))), 200);
  const std::string large = ask(port_, "POST /echo", std::string((1 << 20) + 1, 'x'));
  EXPECT_EQ(status_of(large), 413);
  EXPECT_EQ(body_of(large), R"({"error":"the request has 1048577 bytes; at most 1048576 are taken"})");
  RawClient huge(port_);
  huge.send("POST /echo HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port_) +
            "\r\nContent-Length: 100000000000\r\n\r\n");
  const std::string block(1 << 20, 'x');
  int sent = 0;
  while (sent < 64 && huge.send(block)) ++sent;
  EXPECT_LT(sent, 64);  // given up long before the end
  for (const char* junk : {"\x16\x03\x01\x02\x00\x01", "GET\r\n\r\n", "\r\n\r\n\r\n", "GET /light HTTP/9.9\r\n\r\n"}) {
    RawClient client(port_);
    client.send(junk);
    client.send("\r\n\r\n");
    const int status = status_of(client.receive());
    EXPECT_TRUE(status == 0 || (status >= 400 && status < 500) || status == 505) << status;
  }
  EXPECT_NE(status_of(ask(port_, "GET /" + std::string(100000, 'a'))), 200);
  EXPECT_NE(status_of(ask(port_, "GET /light", "", "X: " + std::string(100000, 'a') + "\r\n")), 200);
  expect_alive();
}

TEST_F(HttpServerTest, SlowClientsAreGivenUp) {
  RawClient silent(port_), half(port_), drip(port_);
  half.send("GET /light HTTP/1.1\r\nHost: 127.0");
  const std::string request = "GET /light HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port_) + "\r\nX: ";
  drip.send(request);
  expect_alive();
  int sent = 0;
  // A byte now and then does not keep a request alive for ever.
  for (; sent < 60 && drip.send("a"); ++sent) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LT(sent, 60);
  silent.receive(3);
  half.receive(3);
  EXPECT_TRUE(silent.closed());
  EXPECT_TRUE(half.closed());
  expect_alive();
}

TEST_F(HttpServerTest, BusyMeansComeBackLater) {
  std::vector<std::thread> clients;
  std::atomic<int> good{0}, later{0}, other{0};
  const auto client = [&] {
    const std::string answer = ask(port_, "GET /slow");
    if (status_of(answer) == 200) ++good;
    if (status_of(answer) == 503 && answer.find("Retry-After: 1") != std::string::npos) ++later;
    if (status_of(answer) != 200 && status_of(answer) != 503) ++other;
  };
  clients.emplace_back(client);
  while (started_ == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (int i = 0; i < 20; ++i) clients.emplace_back(client);
  while (later < 18) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  expect_alive();  // what costs nothing does not queue
  go_on_ = true;
  for (std::thread& t : clients) t.join();
  EXPECT_EQ(good, 3);  // one at work, two waiting
  EXPECT_EQ(later, 18);
  EXPECT_EQ(other, 0);
}

TEST_F(HttpServerTest, SixtyFourClientsAtOnce) {
  std::vector<std::thread> clients;
  std::atomic<int> answered{0};
  for (int c = 0; c < 64; ++c) {
    clients.emplace_back([&] {
      for (int i = 0; i < 10; ++i) answered += status_of(ask(port_, "GET /light")) == 200;
    });
  }
  for (std::thread& t : clients) t.join();
  EXPECT_EQ(answered, 640);
}

TEST_F(HttpServerTest, AConnectionServesSeveralRequests) {
  RawClient client(port_);
  const std::string get = "GET /light HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port_) + "\r\n\r\n";
  client.send(get + get);
  const std::string both = client.receive(0.5);
  EXPECT_EQ(both.rfind("HTTP/1.1 200"), both.find("HTTP/1.1 200", 1));
  EXPECT_NE(both.find("HTTP/1.1 200", 1), std::string::npos);
}

// A web page of another site sends what it likes inside a body, and reads nothing: its first request is refused, and
// what the body holds must never be taken for a second one.
TEST_F(HttpServerTest, TheBodyOfARefusedRequestIsNoRequest) {
  const std::string inner =
      "POST /echo HTTP/1.1\r\nHost: " + host() + "\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
  const auto send = [&](const std::string& line, const std::string& headers) {
    RawClient client(port_);
    client.send(line + " HTTP/1.1\r\n" + headers + "Content-Length: " + std::to_string(inner.size()) + "\r\n\r\n" +
                inner);
    const std::string received = client.receive(2);
    EXPECT_EQ(answers_in(received), 1) << headers << received;
    EXPECT_TRUE(client.closed()) << headers;
    EXPECT_NE(received.find("Connection: close"), std::string::npos) << headers;
    return status_of(received);
  };
  EXPECT_EQ(send("POST /echo", "Host: evil.example\r\n"), 403);
  EXPECT_EQ(send("POST /echo", "Host: " + host() + "\r\nOrigin: http://evil.example\r\n"), 403);
  EXPECT_EQ(send("POST /echo", "Host: " + host() + "\r\nOrigin:\r\n"), 403);
  EXPECT_EQ(send("POST /echo", "Host: " + host() + "\r\nContent-Type: text/plain\r\n"), 415);
  EXPECT_EQ(send("POST /echo", "Host: " + host() + "\r\nSec-Fetch-Site: cross-site\r\n"), 403);
  EXPECT_EQ(send("OPTIONS /echo", "Host: " + host() + "\r\n"), 405);
  EXPECT_EQ(send("POST http://" + host() + "/echo", "Host: " + host() + "\r\n"), 400);
  const int spaced = send("POST /a b", "Host: " + host() + "\r\nContent-Type: application/json\r\n");
  EXPECT_TRUE(spaced == 400 || spaced == 301) << spaced;  // libmicrohttpd 1.0 says how the address is written
  EXPECT_EQ(send("POST /%zz", "Host: " + host() + "\r\nContent-Type: application/json\r\n"), 400);
  EXPECT_EQ(send("GET /light", "Host: " + host() + "\r\nContent-Type: application/json\r\n"), 400);
  EXPECT_EQ(posted_, 0);
  expect_alive();
}

TEST_F(HttpServerTest, AForeignSenderIsRefusedHoweverItIsSaid) {
  const auto status = [&](const std::string& headers) { return status_of(ask(port_, "POST /echo", "{}", headers)); };
  EXPECT_EQ(status("Origin: \r\n"), 403);
  EXPECT_EQ(status("Origin:\r\n"), 403);
  EXPECT_EQ(status("Origin: file://\r\n"), 403);
  EXPECT_NE(status("Origin:\r\n null\r\n"), 200);
  EXPECT_NE(status("Sec-Fetch-Site:\r\n cross-site\r\n"), 200);
  EXPECT_EQ(status("Origin: http://" + host() + ".evil.example\r\n"), 403);
  EXPECT_EQ(status("Origin: http://" + host() + "\r\nOrigin: http://evil.example\r\n"), 403);
  EXPECT_EQ(status("Sec-Fetch-Site: same-site\r\n"), 403);  // another port of this machine
  EXPECT_EQ(status("Sec-Fetch-Site: same-origin\r\n"), 200);
  EXPECT_EQ(status("Content-Type: text/plain\r\n"), 415);
  EXPECT_EQ(status("Content-Type: application/x-www-form-urlencoded\r\n"), 415);
  EXPECT_EQ(status("Content-Type: application/json; charset=utf-8\r\n"), 200);
  EXPECT_EQ(posted_, 2);
  // A person may follow a link to the page, but no page may show it inside itself or ask it for data.
  const std::string from_elsewhere = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: ";
  EXPECT_EQ(status_of(ask(port_, "GET /light", "", from_elsewhere + "document\r\n")), 200);
  EXPECT_EQ(status_of(ask(port_, "GET /light", "", from_elsewhere + "iframe\r\n")), 403);
  EXPECT_EQ(status_of(ask(port_, "GET /api/runs", "", from_elsewhere + "document\r\n")), 403);
  EXPECT_EQ(status_of(ask(port_, "GET /%61pi/runs", "", from_elsewhere + "document\r\n")), 403);
}

TEST_F(HttpServerTest, OneAnswerToWhatIsNoRequest) {
  const std::string rest = "\r\nHost: " + host() + "\r\nA: 1\r\nB: 2\r\n\r\n";
  for (const std::string& line : {std::string("GET"), std::string("nonsense"), std::string("GET /light HTTP/7"),
                                  std::string("GET  /light  HTTP/1.1 x"), std::string("GET /light"),
                                  std::string("\x16\x03\x01"), std::string("CONNECT a:1 HTTP/1.1")}) {
    RawClient client(port_);
    client.send(line + rest + "GET /light HTTP/1.1\r\nHost: " + host() + "\r\n\r\n");
    const std::string received = client.receive(2);
    EXPECT_LE(answers_in(received), 1) << line << "\n" << received;
    EXPECT_TRUE(client.closed()) << line;
    EXPECT_NE(status_of(received), 200) << line;
  }
  expect_alive();
}

TEST_F(HttpServerTest, BodiesComeInOnePieceOfOneSize) {
  const auto status = [&](const std::string& headers, const std::string& body) {
    RawClient client(port_);
    client.send("POST /echo HTTP/1.1\r\nHost: " + host() + "\r\nContent-Type: application/json\r\n" + headers + "\r\n" +
                body);
    const std::string received = client.receive(2);
    EXPECT_TRUE(client.closed());
    return status_of(received);
  };
  EXPECT_EQ(status("Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"), 411);
  EXPECT_EQ(status("Transfer-Encoding: chunked\r\nContent-Length: 2\r\n", "2\r\n{}\r\n0\r\n\r\n"), 411);
  EXPECT_EQ(status("Content-Length: 2\r\nContent-Length: 40\r\n", "{}"), 400);
  EXPECT_EQ(status("Content-Length: -2\r\n", "{}"), 400);
  EXPECT_EQ(status("Content-Length: 2x\r\n", "{}"), 400);
  EXPECT_EQ(status("Content-Length: 99999999999999999999999\r\n", "{}"), 413);
  EXPECT_EQ(status("Content-Length : 2\r\n", "{}"), 400);
  EXPECT_EQ(status("Transfer-Encoding : chunked\r\nContent-Length: 2\r\n", "{}"), 400);
  EXPECT_NE(status("Transfer-Encoding:\r\n chunked\r\nContent-Length: 2\r\n", "{}"), 200);
  EXPECT_EQ(status("Content-Encoding: br\r\nContent-Length: 2\r\n", "{}"), 415);
  EXPECT_EQ(status("Content-Encoding: gzip\r\nContent-Length: 2\r\n", "{}"), 415);
  EXPECT_EQ(posted_, 0);
  // A range of a file is not cut out, and nothing is sent a thousand times.
  std::string ranges = "Range: bytes=0-0";
  for (int i = 0; i < 1000; ++i) ranges += ",0-0";
  EXPECT_EQ(body_of(ask(port_, "GET /light", "", ranges + "\r\n")), "1");
}

TEST_F(HttpServerTest, TwoHundredDrippingClientsHoldUpNobody) {
  end();
  HttpOptions o = options();
  o.read_seconds = 10;
  start(o);
  std::vector<std::unique_ptr<RawClient>> drips;
  for (int i = 0; i < 200; ++i) {
    drips.push_back(std::make_unique<RawClient>(port_));
    drips.back()->send("GET /light HTTP/1.1\r\nHost: ");
  }
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) {
    for (auto& d : drips) d->send("1");
    expect_alive();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(5));
}

TEST_F(HttpServerTest, AnswersNobodyTakesDoNotPileUp) {
  end();
  HttpOptions o = options();
  o.unsent = 100 << 20;
  start(o);
  RawClient first(port_), second(port_);
  for (RawClient* client : {&first, &second}) {
    client->send("GET /large HTTP/1.1\r\nHost: " + host() + "\r\n\r\n");
    EXPECT_TRUE(client->has_answer());
  }
  EXPECT_EQ(status_of(ask(port_, "GET /large")), 503);
  expect_alive();
}

TEST_F(HttpServerTest, AnAnswerThatIsNotTakenIsGivenUp) {
  end();
  HttpOptions o = options();
  o.answer_seconds = 0.3;
  start(o);
  RawClient idle(port_);
  idle.send("GET /large HTTP/1.1\r\nHost: " + host() + "\r\n\r\n");
  EXPECT_TRUE(idle.has_answer());
  std::this_thread::sleep_for(std::chrono::milliseconds(800));
  EXPECT_LT(idle.receive().size(), size_t{40} << 20);
  EXPECT_TRUE(idle.closed());
}

TEST_F(HttpServerTest, WorkThatTakesTooLongIsStopped) {
  const std::string answer = ask(port_, "GET /endless");
  EXPECT_EQ(status_of(answer), 422);
  EXPECT_NE(body_of(answer).find("takes longer than 3 seconds"), std::string::npos);
  expect_alive();
}

TEST_F(HttpServerTest, StoppingDoesNotWaitForWork) {
  std::thread client([&] { ask(port_, "GET /endless"); });
  while (started_ == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const auto begun = std::chrono::steady_clock::now();
  end();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(2));
  client.join();
}

TEST_F(HttpServerTest, WithATokenOnlyThoseWhoKnowItGetIn) {
  end();
  HttpOptions o = options();
  o.token = random_token();
  EXPECT_EQ(o.token.size(), 32u);
  EXPECT_NE(o.token, random_token());
  start(o);
  const std::string wrong(32, '0'), cookie = "Cookie: qkv-" + std::to_string(port_) + "=";
  EXPECT_EQ(status_of(ask(port_, "GET /light")), 403);
  EXPECT_EQ(status_of(ask(port_, "GET /light?token=")), 403);
  EXPECT_EQ(status_of(ask(port_, "GET /light?token=" + wrong)), 403);
  EXPECT_EQ(status_of(ask(port_, "GET /light", "", cookie + wrong + "\r\n")), 403);
  const std::string first = ask(port_, "GET /light?a=1&token=" + o.token);
  EXPECT_EQ(status_of(first), 200);
  EXPECT_NE(
      first.find("Set-Cookie: qkv-" + std::to_string(port_) + "=" + o.token + "; Path=/; HttpOnly; SameSite=Strict"),
      std::string::npos);
  EXPECT_EQ(
      status_of(ask(port_, "GET /light", "", "Cookie: other=1; qkv-" + std::to_string(port_) + "=" + o.token + "\r\n")),
      200);
}

TEST_F(HttpServerTest, APortInUseIsOneLine) {
  HttpOptions o;
  o.port = port_;
  HttpServer second(o, router_);
  try {
    second.bind();
    FAIL() << "both took the port";
  } catch (const IoError& e) {
    EXPECT_NE(std::string(e.what()).find("in use"), std::string::npos);
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace qkv::serve
