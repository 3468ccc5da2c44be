// The server against clients that are rude, slow or many.
#include "qkv/serve/http_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "http_client.h"
#include "qkv/base/error.h"

namespace qkv::serve {
namespace {

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
    return o;
  }

  void SetUp() override {
    server_.get(
        "/light", [](const HttpRequest&) { return HttpResponse{.body = "1"}; }, Work::light);
    server_.get("/slow", [this](const HttpRequest&) {
      ++started_;
      while (!go_on_) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      return HttpResponse{.body = "2"};
    });
    server_.get("/number",
                [](const HttpRequest& r) { return HttpResponse{.body = std::to_string(r.get_integer("n", 7))}; });
    server_.get("/wrong", [](const HttpRequest&) -> HttpResponse { throw ConfigError("no such letter 'x'"); });
    server_.post("/echo", [](const HttpRequest& r) { return HttpResponse{.type = "text/plain", .body = r.body}; });
    port_ = server_.bind();
    thread_ = std::thread([this] { server_.run(); });
  }
  void TearDown() override {
    go_on_ = true;
    server_.stop();
    thread_.join();
  }
  void expect_alive() const { EXPECT_EQ(body_of(ask(port_, "GET /light")), "1"); }

  HttpServer server_{options()};
  std::atomic<bool> go_on_{false};
  std::atomic<int> started_{0};
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
  EXPECT_EQ(body_of(large), R"({"error":"the request is larger than 1 MiB"})");
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
    EXPECT_TRUE(status == 0 || (status >= 400 && status < 500)) << status;
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

TEST_F(HttpServerTest, APortInUseIsOneLine) {
  HttpOptions o;
  o.port = port_;
  HttpServer second(o);
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
