// The API over a small run: what it answers, what it refuses, and that it goes on.
#include "qkv/serve/api.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "http_client.h"
#include "io/temp_folder.h"
#include "qkv/io/file.h"
#include "qkv/io/npy.h"
#include "qkv/train/run_folder.h"
#include "qkv/train/session.h"
#include "qkv/train/trace_maps.h"

namespace qkv::serve {
namespace {

using nlohmann::json;
using testing::ask;
using testing::body_of;
using testing::status_of;

void train(const std::string& path) {
  const TaskSpec& spec = find_task("reverse");
  Settings s = spec.settings();
  for (const auto& [name, value] : {std::pair{"attention", "multi-head"},
                                    {"heads", "2"},
                                    {"hidden", "16"},
                                    {"max-length", "6"},
                                    {"train-size", "200"},
                                    {"validation-size", "20"},
                                    {"epochs", "1"}}) {
    s.set(name, value);
  }
  const auto task = spec.make(s, "");
  RunFolder folder = RunFolder::create(path, spec, s, *task);
  run_session(folder, *task);
}

/// One run that works, one with broken weights, one without a readable configuration, one not yet in its place.
class ApiTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<testing::TempFolder>();
    train(*folder_ / "good");
    std::filesystem::copy(*folder_ / "good", *folder_ / "torn", std::filesystem::copy_options::recursive);
    for (const auto& entry : std::filesystem::directory_iterator(*folder_ / "torn/checkpoints")) {
      write_file_atomic((entry.path() / "model.safetensors").string(), std::string_view("nothing"));
    }
    std::filesystem::create_directory(*folder_ / "broken");
    write_file_atomic(*folder_ / "broken/config.json", std::string_view("{"));
    std::filesystem::copy(*folder_ / "good", *folder_ / "next.tmp-1-0", std::filesystem::copy_options::recursive);
  }
  static void TearDownTestSuite() { folder_.reset(); }

  void SetUp() override {
    models_ = std::make_unique<ModelStore>(std::vector<std::string>{}, folder_->path());
    traces_ = std::make_unique<TraceStore>(*models_);
    trainings_ = std::make_unique<Trainings>(folder_->path());
    HttpOptions o;
    o.port = 0;
    server_ = std::make_unique<HttpServer>(o);
    add_api(*server_, *models_, *traces_, *trainings_);
    port_ = server_->bind();
    thread_ = std::thread([this] { server_->run(); });
  }
  void TearDown() override {
    server_->stop();
    thread_.join();
  }

  json get(const std::string& path, int status = 200) const { return answer("GET " + path, "", status); }
  json post(const std::string& path, const std::string& body, int status = 200) const {
    return answer("POST " + path, body, status);
  }
  json answer(const std::string& line, const std::string& body, int status) const {
    const std::string a = ask(port_, line, body);
    EXPECT_EQ(status_of(a), status) << line << " " << body << "\n" << a;
    return json::parse(body_of(a), nullptr, false);
  }
  std::string trace() const { return post("/api/trace", R"({"model": "good", "input": "abcd"})")["id"]; }

  static std::unique_ptr<testing::TempFolder> folder_;
  std::unique_ptr<ModelStore> models_;
  std::unique_ptr<TraceStore> traces_;
  std::unique_ptr<Trainings> trainings_;
  std::unique_ptr<HttpServer> server_;
  int port_ = 0;
  std::thread thread_;
};
std::unique_ptr<testing::TempFolder> ApiTest::folder_;

TEST_F(ApiTest, ListsRunsWithWhatIsWrongWithThem) {
  const json runs = get("/api/runs")["runs"];
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0]["id"], "broken");
  EXPECT_NE(runs[0]["error"].get<std::string>().find("broken"), std::string::npos);
  EXPECT_EQ(runs[1]["id"], "good");
  EXPECT_EQ(runs[1]["task"], "reverse");
  EXPECT_FALSE(runs[1].contains("error"));
  EXPECT_FALSE(runs[1]["checkpoints"].empty());
}

TEST_F(ApiTest, AnOutputMayBeMadeToBeginOtherwise) {
  const json free = post("/api/trace", R"({"model": "good", "input": "abcd"})");
  const json other = free["candidates"][1][1];  // second choice for the second letter
  const json written = {free["written"][0], other["id"]};
  const json t = post("/api/trace", json{{"model", "good"}, {"input", "abcd"}, {"beginning", written}}.dump());
  EXPECT_NE(t["id"], free["id"]);
  EXPECT_EQ(t["tokens"]["target"][0], free["tokens"]["target"][0]);
  EXPECT_EQ(t["tokens"]["target"][1], other["token"]);
  EXPECT_EQ(t["candidates"][1], free["candidates"][1]);  // what it would have said is not changed by what it was told
  post("/api/trace", R"({"model": "good", "input": "abcd", "beginning": [99]})", 400);
  post("/api/trace", R"({"model": "good", "input": "abcd", "beginning": "a"})", 400);
}

TEST_F(ApiTest, AMapIsTheOneOfTheProgram) {
  const json t = post("/api/trace", R"({"model": "good", "input": "abcd"})");
  const RunFolder run = RunFolder::open(*folder_ / "good");
  const auto task = run.make_task();
  run.load_weights(parameters_of(*task));
  const TracedExample want = task->trace("abcd");
  EXPECT_EQ(t["output"], want.output);
  EXPECT_EQ(t["tokens"]["source"], json({"a", "b", "c", "d"}));
  ASSERT_EQ(t["candidates"].size(), want.target.size());
  double sum = 0;
  for (const json& c : t["candidates"][0]) sum += c["p"].get<double>();
  EXPECT_NEAR(sum, 1, 1e-5);  // six tokens in all, of which ten are asked for
  const std::vector<HeatMap> maps = maps_of(want);
  for (size_t h = 0; h < maps.size(); ++h) {
    const std::string path = "/api/trace/" + t["id"].get<std::string>() + "/map?site=cross&head=" + std::to_string(h);
    const std::string bytes = body_of(ask(port_, "GET " + path));
    const NpyArray array = parse_npy(std::as_bytes(std::span(bytes)), "answer");
    const std::vector<float> got = array.to_f32();
    ASSERT_EQ(got.size(), maps[h].values.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], maps[h].values[i]) << h << " " << i;
  }
}

TEST_F(ApiTest, FiguresAndPooledWindows) {
  const std::string id = trace();
  const json f = get("/api/trace/" + id + "/figures?site=cross");
  EXPECT_EQ(f["entropy"][0].size(), 2u);
  EXPECT_GE(f["entropy"][0][0].get<double>(), 0);
  EXPECT_LE(f["entropy"][0][0].get<double>(), 1);
  EXPECT_EQ(status_of(ask(port_, "GET /api/trace/" + id + "/thumbs?site=cross&size=8")), 200);
  EXPECT_EQ(status_of(ask(port_, "GET /api/trace/" + id + "/map?rows=0:2&cols=1:3&pool=2")), 200);
  get("/api/trace/" + id + "/map?rows=0:1000", 400);
  get("/api/trace/" + id + "/map?rows=-1:2", 400);
  get("/api/trace/" + id + "/map?rows=2", 400);
  get("/api/trace/" + id + "/map?layer=9", 400);
  get("/api/trace/" + id + "/map?head=-1", 400);
  get("/api/trace/" + id + "/map?pool=0", 400);
  get("/api/trace/" + id + "/map?what=secrets", 400);
  get("/api/trace/" + id + "/map?what=rollout", 400);  // cross-attention has none
  get("/api/trace/" + id + "/thumbs?size=100000", 400);
  EXPECT_EQ(get("/api/trace/" + id + "/map?site=nowhere", 400)["field"], "site");
  get("/api/trace/0123456789abcdef/map", 404);
}

TEST_F(ApiTest, RefusesWhatItCannotReadAndSaysWhy) {
  post("/api/trace", "{", 400);
  post("/api/trace", "[]", 400);
  post("/api/trace", "null", 400);
  post("/api/trace", R"({"model": {"deep": 1}, "input": "a"})", 400);
  post("/api/trace", std::string(5000, '['), 400);
  EXPECT_EQ(post("/api/trace", R"({"model": "good"})", 400)["field"], "input");
  EXPECT_EQ(post("/api/trace", R"({"input": "abcd"})", 400)["field"], "model");
  EXPECT_EQ(post("/api/trace", R"({"model": "good", "input": "xyz"})", 400)["field"], "input");
  EXPECT_EQ(post("/api/trace", R"({"model": "nobody", "input": "a"})", 404)["error"], "no run 'nobody'");
  post("/api/trace", R"({"model": "../good", "input": "a"})", 404);
  post("/api/trace", R"({"model": "good", "checkpoint": "../../etc", "input": "a"})", 400);
  post("/api/trace", R"({"model": "good", "checkpoint": "999999", "input": "a"})", 400);
  post("/api/trace", json{{"model", "good"}, {"input", std::string(20000, 'a')}}.dump(), 400);
  post("/api/runs", R"({"task": "juggling"})", 400);
  post("/api/runs", R"({"task": "reverse", "settings": {"out": "/tmp/x"}})", 400);
  post("/api/runs", R"({"task": "reverse", "settings": 3})", 400);
  answer("DELETE /api/runs/good", "", 404);
  get("/api/runs/..%2f..%2fetc/metrics", 404);
  post("/api/lab/nothing", "{}", 400);
  post("/api/lab/copy", R"({"settings": {"t": "much"}})", 400);
}

TEST_F(ApiTest, OneBrokenRunDoesNotTouchTheOthers) {
  EXPECT_NE(post("/api/trace", R"({"model": "broken", "input": "a"})", 422)["error"].get<std::string>().find("broken"),
            std::string::npos);
  EXPECT_NE(post("/api/trace", R"({"model": "torn", "input": "a"})", 422)["error"].get<std::string>().find("torn"),
            std::string::npos);
  EXPECT_FALSE(trace().empty());
}

TEST_F(ApiTest, MetricsGoOnWhereTheyStopped) {
  const json all = get("/api/runs/good/metrics");
  ASSERT_FALSE(all["records"].empty());
  EXPECT_FALSE(all["more"].get<bool>());
  const json rest = get("/api/runs/good/metrics?from=" + all["next"].dump());
  EXPECT_TRUE(rest["records"].empty());
  EXPECT_EQ(rest["next"], all["next"]);
}

TEST_F(ApiTest, EveryExperimentAnswersWithItsPictures) {
  const json lab = get("/api/lab");
  for (const json& e : lab["experiments"]) {
    if (e["name"] == "cost") continue;  // takes a stopwatch's time
    const json r = post("/api/lab/" + e["name"].get<std::string>(), "{}");
    EXPECT_FALSE(r["pictures"].empty()) << e["name"];
    EXPECT_TRUE(r["agrees"].get<bool>()) << e["name"];
  }
}

TEST_F(ApiTest, ManyClientsAtOnceAreAnsweredOrToldToComeBack) {
  const std::string id = trace();
  std::vector<std::thread> clients;
  std::atomic<int> good{0}, later{0}, other{0};
  for (int c = 0; c < 64; ++c) {
    clients.emplace_back([&, c] {
      for (int i = 0; i < 4; ++i) {
        const std::string input(static_cast<size_t>(1 + (c + i) % 5), 'a');
        const int status =
            status_of(c % 2 == 0 ? ask(port_, "GET /api/trace/" + id + "/map")
                                 : ask(port_, "POST /api/trace", R"({"model": "good", "input": ")" + input + "\"}"));
        ++(status == 200 ? good : status == 503 ? later : other);
      }
    });
  }
  for (std::thread& t : clients) t.join();
  EXPECT_EQ(good + later, 256);
  EXPECT_EQ(other, 0);
  EXPECT_GT(good, 0);
  EXPECT_FALSE(trace().empty());
}

TEST(TraceRollout, RowsSumToOneAndACausalOneStaysCausal) {
  // Two layers of two heads: softmax rows over visible keys made by hand.
  constexpr int64_t L = 5;
  TracedExample e;
  for (int64_t i = 0; i < L; ++i) e.source.push_back(std::to_string(i));
  for (int layer = 0; layer < 2; ++layer) {
    AttentionTrace t{.site = "self", .layer = layer, .B = 1, .H = 2, .Lq = L, .Lk = L, .causal = true, .scores = {}};
    t.scores = [layer](const kernels::ScoreWindow& w) {
      Tensor out = Tensor::zeros({w.row_end - w.row_begin, L});
      for (int64_t i = w.row_begin; i < w.row_end; ++i) {
        double sum = 0;
        for (int64_t j = 0; j <= i; ++j) sum += std::exp(static_cast<double>((j + w.h + layer) % 3));
        for (int64_t j = 0; j <= i; ++j) {
          out.f32()[(i - w.row_begin) * L + j] =
              static_cast<float>(std::exp(static_cast<double>((j + w.h + layer) % 3)) / sum);
        }
      }
      return out;
    };
    e.attention.push_back(t);
  }
  const Trace trace("1", e);
  const Tensor m = trace.map(trace.site("self"), {.layer = 1, .row_end = L, .col_end = L, .kind = MapKind::rollout});
  for (int64_t i = 0; i < L; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < L; ++j) {
      const auto v = static_cast<double>(m.f32()[i * L + j]);
      if (j > i) {
        EXPECT_EQ(v, 0);
      }
      sum += v;
    }
    EXPECT_NEAR(sum, 1, 1e-6);
  }
  EXPECT_NEAR(static_cast<double>(m.f32()[0]), 1, 1e-6);
}

}  // namespace
}  // namespace qkv::serve
