// The API over a small run: what it answers, what it refuses, and that it keeps serving.
#include "qkv/routes/api.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "io/temp_folder.h"
#include "qkv/base/budget.h"
#include "qkv/io/file.h"
#include "qkv/io/npy.h"
#include "qkv/report/trace_maps.h"
#include "qkv/train/run_folder.h"
#include "qkv/train/session.h"

namespace qkv::routes {
namespace {

using nlohmann::json;

/// Remembers what was ordered and starts nothing.
class FakeTrainings final : public Trainings {
 public:
  std::string start(const TrainingOrder& order) override {
    orders.push_back(order);
    return order.task;
  }
  void stop(const std::string& id) override {
    if (id != "fake") throw RouteError(404, "no training '" + id + "' was started here", "id");
    ++stopped;
  }
  bool is_running(const std::string& id) override { return id == "fake"; }
  std::map<std::string, std::string> failures() override { return {{"failed", "there was no memory for it"}}; }

  std::vector<TrainingOrder> orders;
  int stopped = 0;
};

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
    add_api(router_, {*models_, *traces_, trainings_, {{"corpus", "/data/corpus"}}});
  }

  Response ask(const std::string& method, const std::string& target, const std::string& body = "") const {
    return router_.answer(make_request(method, target, body));
  }
  json get(const std::string& target, int status = 200) const { return answer("GET", target, "", status); }
  json post(const std::string& target, const std::string& body, int status = 200) const {
    return answer("POST", target, body, status);
  }
  json answer(const std::string& method, const std::string& target, const std::string& body, int status) const {
    const Response r = ask(method, target, body);
    EXPECT_EQ(r.status, status) << method << " " << target << " " << body << "\n" << r.body;
    return json::parse(r.body, nullptr, false);
  }
  std::string trace() const { return post("/api/trace", R"({"model": "good", "input": "abcd"})")["id"]; }

  static std::unique_ptr<testing::TempFolder> folder_;
  std::unique_ptr<ModelStore> models_;
  std::unique_ptr<TraceStore> traces_;
  FakeTrainings trainings_;
  Router router_;
};
std::unique_ptr<testing::TempFolder> ApiTest::folder_;

TEST_F(ApiTest, ListsRunsWithWhatIsWrongWithThem) {
  const json runs = get("/api/runs")["runs"];
  ASSERT_EQ(runs.size(), 4u);
  EXPECT_EQ(runs[0]["id"], "broken");
  EXPECT_NE(runs[0]["error"].get<std::string>().find("broken"), std::string::npos);
  EXPECT_EQ(runs[1]["id"], "good");
  EXPECT_EQ(runs[1]["task"], "reverse");
  EXPECT_EQ(runs[1]["input"], "text");
  EXPECT_FALSE(runs[1].contains("error"));
  EXPECT_FALSE(runs[1]["checkpoints"].empty());
  EXPECT_EQ(runs[3]["id"], "failed");
  EXPECT_EQ(runs[3]["error"], "there was no memory for it");
}

TEST_F(ApiTest, RunsOfAComparisonGoByTheirPlaceBelowTheRoot) {
  namespace fs = std::filesystem;
  const testing::TempFolder root, outside;
  make_folders(root / "compare-reverse");
  write_file_atomic(root / "compare-reverse/compare.json", std::string_view("{}"));
  fs::copy(*folder_ / "good", root / "compare-reverse/multi-head", fs::copy_options::recursive);
  fs::copy(*folder_ / "good", outside / "secret", fs::copy_options::recursive);
  fs::create_directory_symlink(outside.path(), root / "way-out");
  const auto with = [&](const std::vector<std::string>& paths, const std::string& id) {
    ModelStore models(paths, root.path());
    TraceStore traces(models);
    Router router;
    add_api(router, {models, traces, trainings_, {}});
    const json runs = json::parse(router.answer(make_request("GET", "/api/runs")).body)["runs"];
    EXPECT_EQ(runs.size(), 2u) << runs.dump();  // and the training that failed
    EXPECT_EQ(runs[0]["id"], id);
    EXPECT_EQ(runs[0]["group"], "compare-reverse");
    const auto status = [&](const std::string& target) { return router.answer(make_request("GET", target)).status; };
    EXPECT_EQ(status("/api/runs/compare-reverse%2Fmulti-head/metrics"), 200);
    for (const char* wrong :
         {"compare-reverse", "way-out%2Fsecret", "compare-reverse%2F..%2Fcompare-reverse%2Fmulti-head",
          "compare-reverse%2F%2Fmulti-head", ".%2Fcompare-reverse%2Fmulti-head", "%2Fetc"}) {
      EXPECT_EQ(status(std::string("/api/runs/") + wrong + "/metrics"), 404) << wrong;
    }
    const json body{{"model", id}, {"input", "abcd"}};
    EXPECT_EQ(router.answer(make_request("POST", "/api/trace", body.dump())).status, 200);
  };
  with({}, "compare-reverse/multi-head");
  with({root / "compare-reverse"}, "compare-reverse/multi-head");
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
    const std::string bytes = ask("GET", path).body;
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
  EXPECT_EQ(ask("GET", "/api/trace/" + id + "/thumbs?site=cross&size=8").status, 200);
  EXPECT_EQ(ask("GET", "/api/trace/" + id + "/map?rows=0:2&cols=1:3&pool=2").status, 200);
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

TEST_F(ApiTest, ACellLeadsFromQueryAndKeyToTheWeight) {
  const std::string id = trace();
  const json c = get("/api/trace/" + id + "/cell?site=cross&head=1&query=1&key=2");
  ASSERT_EQ(c["query"].size(), c["key"].size());
  double product = 0, total = 0;
  for (size_t d = 0; d < c["terms"].size(); ++d) {
    EXPECT_NEAR(c["terms"][d], c["query"][d].get<double>() * c["key"][d].get<double>(), 1e-9);
    product += c["terms"][d].get<double>();
  }
  EXPECT_NEAR(c["product"], product, 1e-9);
  EXPECT_NEAR(c["raw"], product * c["scale"].get<double>(), 1e-5);
  EXPECT_NEAR(c["weight"], c["exponential"].get<double>() / c["total"].get<double>(), 1e-5);
  EXPECT_EQ(c["bias"], 0.0);
  for (int key = 0; key < 4; ++key) {
    total +=
        get("/api/trace/" + id + "/cell?site=cross&head=1&query=1&key=" + std::to_string(key))["weight"].get<double>();
  }
  EXPECT_NEAR(total, 1, 1e-5);
  EXPECT_EQ(get("/api/trace/" + id + "/cell?query=99", 400)["field"], "query");
  EXPECT_EQ(get("/api/trace/" + id + "/cell?key=-1", 400)["field"], "key");
  EXPECT_EQ(get("/api/trace/" + id + "/cell?head=7", 400)["field"], "head");
}

TEST_F(ApiTest, TasksComeWithTheSettingsThatAreOpen) {
  const json tasks = get("/api/tasks")["tasks"];
  ASSERT_EQ(tasks.size(), task_table().size());
  for (const json& task : tasks) {
    EXPECT_FALSE(task["settings"].empty()) << task["name"];
    for (const json& s : task["settings"]) {
      const json body{{"task", task["name"]}, {"settings", {{s["name"], s["value"]}}}};
      EXPECT_EQ(ask("POST", "/api/runs", body.dump()).status, 201) << body;
    }
  }
}

TEST_F(ApiTest, ABlockIsExplainedNumberByNumber) {
  const json post_norm = get("/api/explain/block");
  EXPECT_GT(post_norm["steps"].size(), 20u);
  EXPECT_NE(get("/api/explain/block?norm=pre")["steps"].size(), 0u);
  const json causal = get("/api/explain/block?causal=true");
  EXPECT_NE(causal["steps"], post_norm["steps"]);
  get("/api/explain/block?norm=none", 400);
  get("/api/explain/block?causal=maybe", 400);
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
  EXPECT_EQ(post("/api/trace", R"({"model": "good", "input": "a", "sample": {"seed": 2}})", 400)["field"], "sample");
  post("/api/trace", json{{"model", "good"}, {"input", std::string(20000, 'a')}}.dump(), 400);
  // Numbers that no such field has, or that no integer holds.
  for (const char* odd : {R"("beginning": [0.5])", R"("beginning": [1e300])", R"("beginning": 3)", R"("length": 0.5)",
                          R"("length": 1e300)", R"("length": "5")", R"("sample": {"top_k": 2.5})",
                          R"("sample": {"top_k": 1e300})", R"("sample": {"seed": -1})", R"("sample": {"top_p": 2})",
                          R"("sample": {"temperature": -1})", R"("sample": 1)"}) {
    const std::string what =
        post("/api/trace", R"({"model": "good", "input": "a", )" + std::string(odd) + "}", 400)["error"];
    EXPECT_EQ(what.find("draws no tokens"), std::string::npos) << odd;
  }
  post("/api/runs", R"({"task": "juggling"})", 400);
  post("/api/runs", R"({"task": "reverse", "settings": {"out": "/tmp/x"}})", 400);
  post("/api/runs", R"({"task": "reverse", "settings": 3})", 400);
  post("/api/runs", R"({"task": "reverse", "epochs": 5})", 400);
  post("/api/runs", R"({"settings": {"epochs": 5}})", 400);
  post("/api/runs", "{}", 400);
  answer("DELETE", "/api/runs/good", "", 404);
  get("/api/runs/..%2f..%2fetc/metrics", 404);
  post("/api/lab/nothing", "{}", 400);
  post("/api/lab/copy", "[1]", 400);
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
        const int status = (c % 2 == 0 ? ask("GET", "/api/trace/" + id + "/map")
                                       : ask("POST", "/api/trace", R"({"model": "good", "input": ")" + input + "\"}"))
                               .status;
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

TEST_F(ApiTest, OnlyWhatATaskLeavesOpenMayBeSet) {
  for (const TaskSpec& spec : task_table()) {
    const Settings settings = spec.settings();
    for (const Setting& s : settings.all()) {
      const json body{{"task", spec.name}, {"settings", {{s.name, s.value}}}};
      const Response r = ask("POST", "/api/runs", body.dump());
      EXPECT_EQ(r.status, s.client ? 201 : 400) << spec.name << " " << s.name << r.body;
    }
  }
  trainings_.orders.clear();
  for (const char* name : {"data", "train-src", "train-tgt", "val-src", "from", "out", "resume"}) {
    post("/api/runs", json{{"task", "translate"}, {"settings", {{name, "/etc/passwd"}}}}.dump(), 400);
  }
  EXPECT_TRUE(trainings_.orders.empty());
}

TEST_F(ApiTest, DataSetsAndRunsAreNamedNotPathed) {
  EXPECT_EQ(get("/api/runs")["data_sets"], json({"corpus"}));
  EXPECT_EQ(post("/api/runs", R"({"task": "text", "data": "/etc/passwd"})", 400)["field"], "data");
  post("/api/runs", R"({"task": "text", "data": "../corpus"})", 400);
  post("/api/runs", R"({"task": "reverse", "data": "corpus"})", 400);  // has no data of its own
  post("/api/runs", R"({"task": "text", "from": "../good"})", 404);
  EXPECT_TRUE(trainings_.orders.empty());
  post("/api/runs", R"({"task": "text", "data": "corpus", "settings": {"epochs": 2}})", 201);
  post("/api/runs", R"({"task": "reverse", "from": "good"})", 201);
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(trainings_.orders[0].settings, (Pairs{{"epochs", "2"}, {"data", "/data/corpus"}}));
  EXPECT_EQ(trainings_.orders[1].settings, (Pairs{{"from", *folder_ / "good"}}));
}

TEST_F(ApiTest, SettingsAreOneShortLine) {
  post("/api/runs", json{{"settings", {{"alphabet", "ab\ncd"}}}}.dump(), 400);
  post("/api/runs", json{{"settings", {{"alphabet", std::string("ab\0cd", 5)}}}}.dump(), 400);
  post("/api/runs", json{{"settings", {{"alphabet", std::string(5000, 'a')}}}}.dump(), 400);
  post("/api/runs", R"({"settings": {"epochs": [1]}})", 400);
  EXPECT_TRUE(trainings_.orders.empty());
}

TEST_F(ApiTest, ReadOnlyStartsAndStopsNothing) {
  Router router;
  add_api(router, {*models_, *traces_, trainings_, {}, true});
  EXPECT_EQ(router.answer(make_request("POST", "/api/runs", R"({"task": "reverse"})")).status, 403);
  EXPECT_EQ(router.answer(make_request("DELETE", "/api/runs/fake")).status, 403);
  EXPECT_TRUE(trainings_.orders.empty());
  EXPECT_EQ(trainings_.stopped, 0);
  const Response list = router.answer(make_request("GET", "/api/runs"));
  EXPECT_TRUE(json::parse(list.body)["read_only"].get<bool>());
  EXPECT_EQ(router.answer(make_request("POST", "/api/trace", R"({"model": "good", "input": "ab"})")).status, 200);
}

TEST_F(ApiTest, TextThatLooksLikeAPictureIsAsLongAsText) {
  const json r = post("/api/trace", json{{"model", "good"}, {"input", "data:" + std::string(200000, 'a')}}.dump(), 400);
  EXPECT_EQ(r["error"], "the input has 200005 bytes; at most 16384 are taken");
}

TEST_F(ApiTest, APipeInPlaceOfAFileBlocksNobody) {
  std::filesystem::copy(*folder_ / "good", *folder_ / "piped", std::filesystem::copy_options::recursive);
  std::filesystem::remove(*folder_ / "piped/metrics.jsonl");
  ASSERT_EQ(::mkfifo((*folder_ / "piped/metrics.jsonl").c_str(), 0600), 0);
  EXPECT_TRUE(get("/api/runs/piped/metrics")["records"].empty());
  std::filesystem::remove_all(*folder_ / "piped");
}

TEST_F(ApiTest, WorkBeyondTheBudgetIsRefusedOrStopped) {
  const auto within = [&](double seconds, int64_t bytes, const std::string& target, const std::string& body) {
    const Budget budget(std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000)), bytes);
    const BudgetScope scope(&budget);
    const auto begun = Budget::Clock::now();
    const Response r = ask("POST", target, body);
    EXPECT_LT(Budget::Clock::now() - begun, std::chrono::seconds(20)) << target;
    return r;
  };
  constexpr int64_t kBytes = 384 << 20;
  for (const char* settings : {R"({"samples": 1000000, "keys": 16, "dim": 1024})", R"({"samples": 1000000})"}) {
    const std::string body = R"({"settings": )" + std::string(settings) + "}";
    EXPECT_EQ(within(0.5, kBytes, "/api/lab/noisy-keys", body).status, 422) << settings;
  }
  EXPECT_EQ(within(0.5, kBytes, "/api/lab/cost", R"({"settings": {"length": 16384, "dim": 1024}})").status, 422);
  EXPECT_EQ(
      within(9, kBytes, "/api/lab/two-heads", R"({"settings": {"samples": 1000000, "keys": 256, "dim": 1024}})").status,
      400);
  EXPECT_EQ(within(9, 1 << 10, "/api/trace", R"({"model": "good", "input": "abcdab"})").status, 422);
  EXPECT_EQ(within(9, kBytes, "/api/trace", R"({"model": "good", "input": "abcdab"})").status, 200);
}

TEST_F(ApiTest, ExperimentsMayBeStoppedAnywhere) {
  const json lab = get("/api/lab");
  for (const json& e : lab["experiments"]) {
    const std::string target = "/api/lab/" + e["name"].get<std::string>();
    for (const int milliseconds : {1, 4, 16, 60}) {
      const Budget budget(std::chrono::milliseconds(milliseconds), 384 << 20);
      const BudgetScope scope(&budget);
      const int status = ask("POST", target, "{}").status;
      EXPECT_TRUE(status == 200 || status == 422) << target << " " << status;
    }
  }
}

/// A site of this many tokens whose weights are all alike.
TracedExample flat_example(int64_t tokens, int64_t heads) {
  TracedExample e;
  AttentionTrace t{
      .site = "self", .layer = 0, .B = 1, .H = heads, .Lq = tokens, .Lk = tokens, .causal = false, .scores = {}};
  t.scores = [tokens](const ScoreWindow& w) {
    return Tensor::full({w.row_end - w.row_begin, tokens}, 1.0 / static_cast<double>(tokens));
  };
  e.attention.push_back(t);
  return e;
}

TEST(TraceLimits, AMapThatIsTooLargeSaysItsSize) {
  const Trace trace("1", flat_example(16384, 16));
  const TraceSite& site = trace.site("");
  const MapWindow whole{.row_end = 16384, .col_end = 16384};
  const auto refusal = [](auto&& work) {
    try {
      work();
    } catch (const RouteError& e) {
      return std::pair(e.status(), std::string(e.what()));
    }
    return std::pair(200, std::string());
  };
  const auto large = refusal([&] { trace.map(site, whole); });
  EXPECT_EQ(large.first, 413);
  EXPECT_NE(large.second.find("16384 x 16384"), std::string::npos);
  MapWindow pooled = whole;
  pooled.pool = 8;
  pooled.row_end = 1024;
  EXPECT_EQ(trace.map(site, pooled).shape(), (Shape{128, 2048}));
  EXPECT_EQ(refusal([&] { trace.figures(site); }).first, 422);
  EXPECT_EQ(refusal([&] { trace.thumbnails(site, 32); }).first, 422);
  MapWindow rolled = whole;
  rolled.kind = MapKind::rollout;
  rolled.pool = 16;
  EXPECT_EQ(refusal([&] { trace.map(site, rolled); }).first, 422);
}

TEST(TraceRollout, RowsSumToOneAndACausalOneStaysCausal) {
  // Two layers of two heads: softmax rows over visible keys made by hand.
  constexpr int64_t L = 5;
  TracedExample e;
  for (int64_t i = 0; i < L; ++i) e.source.push_back(std::to_string(i));
  for (int layer = 0; layer < 2; ++layer) {
    AttentionTrace t{.site = "self", .layer = layer, .B = 1, .H = 2, .Lq = L, .Lk = L, .causal = true, .scores = {}};
    t.scores = [layer](const ScoreWindow& w) {
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
}  // namespace qkv::routes
