// Parsing of requests and finding of routes, without HTTP.
#include "qkv/routes/router.h"

#include <gtest/gtest.h>

#include <new>

#include "qkv/base/error.h"

namespace qkv::routes {
namespace {

TEST(MakeRequest, DecodesPathAndQuery) {
  const Request r = make_request("GET", "/api/runs/a%20b?from=3&x=1%262&x=last&y&z=a+b");
  EXPECT_EQ(r.path, "/api/runs/a b");
  EXPECT_EQ(r.get_integer("from", 0), 3);
  EXPECT_EQ(r.get("x"), "last");
  EXPECT_EQ(r.get("y", "none"), "");
  EXPECT_EQ(r.get("z"), "a b");
  EXPECT_EQ(r.get("absent", "none"), "none");
  EXPECT_EQ(make_request("HEAD", "/").method, "GET");
  const Request nested = make_request("GET", "/api/runs/compare%2Fdot/metrics");
  EXPECT_EQ(nested.segments, (std::vector<std::string>{"api", "runs", "compare/dot", "metrics"}));
}

TEST(MakeRequest, RefusesWhatIsNoPath) {
  for (const std::string& target : {std::string(""), std::string("http://a/b"), std::string("*"), std::string("a:1"),
                                    std::string("/a b"), std::string("/%"), std::string("/%4"), std::string("/%zz"),
                                    std::string("/%00"), std::string("/a?b=%0"), std::string("/a\nb")}) {
    EXPECT_THROW(make_request("GET", target), RouteError) << target;
  }
}

TEST(RouterTest, FindsRoutesByWholeSegments) {
  Router router;
  router.add(
      "GET", "/", [](const Request&) { return Response{.body = "page"}; }, Work::light);
  router.add("GET", "/runs/{}/metrics", [](const Request& r) { return Response{.body = r.parts[0]}; });
  router.add("GET", "/full", [](const Request&) -> Response { throw std::bad_alloc(); });
  router.add("GET", "/bad", [](const Request&) -> Response { throw Error("broken"); });
  const auto answer = [&](const char* method, const char* target) {
    return router.answer(make_request(method, target));
  };
  EXPECT_EQ(answer("GET", "/").body, "page");
  EXPECT_EQ(answer("GET", "/runs/x/metrics").body, "x");
  for (const char* target :
       {"/runs/x", "/runs//metrics", "/runs/x/metrics/", "/runs/..%2f/metrics", "//", "/runs/x/y/metrics"}) {
    EXPECT_EQ(answer("GET", target).status, 404) << target;
  }
  EXPECT_EQ(answer("POST", "/").status, 404);
  EXPECT_EQ(answer("GET", "/full").status, 422);
  EXPECT_EQ(answer("GET", "/bad").body, R"({"error":"broken"})");
  EXPECT_EQ(router.work_of(make_request("GET", "/")), Work::light);
  EXPECT_EQ(router.work_of(make_request("GET", "/runs/x/metrics")), Work::heavy);
  EXPECT_EQ(router.work_of(make_request("GET", "/nothing")), Work::light);
}

}  // namespace
}  // namespace qkv::routes
