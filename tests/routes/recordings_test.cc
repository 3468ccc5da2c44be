// Recordings: what was recorded of a model is what the model itself shows, to the last bit, and nothing else is taken.
#include "qkv/tasks/recordings.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "qkv/routes/api.h"
#include "qkv/train/run_archive.h"
#include "qkv/train/session.h"

namespace qkv::routes {
namespace {

using nlohmann::json;
using testing::message_of;
using testing::TempFolder;
using Changes = std::vector<std::pair<const char*, const char*>>;

std::unique_ptr<Task> task_of(const char* name, const Changes& changes) {
  Settings s = find_task(name).settings();
  for (const auto& [option, value] : changes) s.set(option, value);
  return find_task(name).make(s, "");
}

/// NaN where both are hidden.
void expect_same(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  for (int64_t i = 0; i < a.numel(); ++i) {
    const float x = a.f32()[i], y = b.f32()[i];
    ASSERT_TRUE(x == y || (std::isnan(x) && std::isnan(y))) << i << ": " << x << " and " << y;
  }
}

void expect_same_site(const Trace& a, const Trace& b, const TraceSite& site) {
  const TraceSite& other = b.site(site.id);
  ASSERT_EQ(site.layers.size(), other.layers.size());
  EXPECT_EQ(site.causal, other.causal);
  for (int64_t layer = 0; layer < static_cast<int64_t>(site.layers.size()); ++layer) {
    for (int64_t head = 0; head < site.H; ++head) {
      MapWindow w{.layer = layer, .head = head, .row_end = site.Lq, .col_end = site.Lk};
      expect_same(a.map(site, w), b.map(other, w));
      w.kind = MapKind::scores;
      expect_same(a.map(site, w), b.map(other, w));
    }
  }
  EXPECT_EQ(a.figures(site)[0][0].entropy, b.figures(other)[0][0].entropy);
  ASSERT_EQ(site.layers[0]->cell == nullptr, other.layers[0]->cell == nullptr);
  if (!site.layers[0]->cell) return;
  const AttentionCell x = a.cell(site, {.query = site.Lq - 1, .key = 0});
  const AttentionCell y = b.cell(other, {.query = site.Lq - 1, .key = 0});
  EXPECT_EQ(x.weight, y.weight);
  EXPECT_EQ(x.terms, y.terms);
  EXPECT_EQ(x.value, y.value);
  EXPECT_EQ(x.output, y.output);
}

/// Records one input of the model and compares.
void expect_faithful(Task& task, const std::string& input) {
  const TempFolder folder;
  const std::vector<std::string> inputs{input};
  write_recordings(folder / "r.safetensors", task, inputs, inputs, "7");
  Recordings recorded = Recordings::load(folder / "r.safetensors");
  EXPECT_EQ(recorded.weights(), "7");
  EXPECT_EQ(recorded.examples(0), inputs);
  const TracedExample want = task.trace(input), got = recorded.trace(input);
  EXPECT_EQ(got.source, want.source);
  EXPECT_EQ(got.target, want.target);
  EXPECT_EQ(got.output, want.output);
  ASSERT_EQ(got.candidates.size(), want.candidates.size());
  for (size_t i = 0; i < want.candidates.size(); ++i) {
    ASSERT_EQ(got.candidates[i].size(), want.candidates[i].size());
    EXPECT_EQ(got.candidates[i][0].token, want.candidates[i][0].token);
    EXPECT_EQ(got.candidates[i][0].probability, want.candidates[i][0].probability);
  }
  ASSERT_EQ(got.picture.has_value(), want.picture.has_value());
  if (want.picture) {
    EXPECT_EQ(got.picture->pixels, want.picture->pixels);
  }
  const Trace a("a", want), b("b", got);
  ASSERT_EQ(a.sites().size(), b.sites().size());
  for (const TraceSite& site : a.sites()) expect_same_site(a, b, site);
}

const Changes kSmallText{{"generated-size", "100"}, {"width", "16"}, {"layers", "2"}, {"heads", "2"}, {"block", "32"}};

TEST(Recordings, OfEveryKindOfScore) {
  for (const char* attention : {"dot", "scaled-dot", "general", "additive", "multi-head", "mean"}) {
    SCOPED_TRACE(attention);
    expect_faithful(*task_of("reverse", {{"attention", attention}, {"hidden", "16"}, {"train-size", "50"}}), "abcdab");
  }
}

TEST(Recordings, OfCausalLayersAndPositions) {
  for (const char* positions : {"learned", "rotary", "alibi"}) {
    SCOPED_TRACE(positions);
    Changes changes = kSmallText;
    changes.emplace_back("positions", positions);
    expect_faithful(*task_of("text", changes), "the old man");
  }
}

TEST(Recordings, OfTranslationsWithTheirAlignment) {
  const auto task = task_of("translate", {{"model", "transformer"},
                                          {"tokenizer", "word"},
                                          {"generated-size", "100"},
                                          {"layers", "2"},
                                          {"heads", "2"},
                                          {"width", "16"},
                                          {"inner", "16"}});
  expect_faithful(*task, task->examples(1).at(0));
}

TEST(Recordings, OfPictures) {
  const auto task = task_of("images", {{"data", "shapes"}, {"train-size", "20"}, {"layers", "1"}, {"width", "16"}});
  expect_faithful(*task, "val:0");
}

/// A text run with a checkpoint, packed with its recordings and unpacked below `root`.
class RecordedRun : public ::testing::Test {
 protected:
  void SetUp() override {
    const TaskSpec& spec = find_task("text");
    Settings s = spec.settings();
    for (const auto& [option, value] : kSmallText) s.set(option, value);
    s.set("steps", "2");
    OpenedRun run = open_or_create(folder_ / "small", spec, s);
    run_session(run.folder, *run.task);
    OpenedRun opened = load_run(folder_ / "small", "");
    write_recordings(folder_ / "r.safetensors", *opened.task, inputs_, inputs_, weights_name(opened.weights));
    archive_ = pack_run(folder_ / "small", "small", {.recordings = folder_ / "r.safetensors"});
  }
  const TempFolder folder_;
  const std::vector<std::string> inputs_{"the old", "a man"};
  Bytes archive_;
};

class NoTrainings final : public Trainings {
  std::string start(const TrainingOrder& order) override { return order.task; }
  void stop(const std::string&) override {}
  bool is_running(const std::string&) override { return false; }
  std::map<std::string, std::string> failures() override { return {}; }
};

TEST_F(RecordedRun, AnswersBehindTheSameRoutes) {
  unpack_run(archive_, "a.tar", folder_ / "there");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "there/small/checkpoints/00000002/model.safetensors"));
  NoTrainings trainings;
  ModelStore models({}, folder_ / "there"), own({folder_ / "small"}, "");
  TraceStore traces(models), own_traces(own);
  Router there, here;
  add_api(there, {models, traces, trainings, {}});
  add_api(here, {own, own_traces, trainings, {}});
  const auto ask = [](Router& router, const char* method, const std::string& path, const std::string& body = "") {
    return router.answer(make_request(method, path, body));
  };
  const json run = json::parse(ask(there, "GET", "/api/runs").body)["runs"][0];
  EXPECT_EQ(run["recorded"], true);
  EXPECT_EQ(run["checkpoints"], json({2}));
  EXPECT_EQ(json::parse(ask(there, "GET", "/api/runs/small/examples").body)["examples"], json(inputs_));
  const std::string body = R"({"model": "small", "input": "a man"})";
  json a = json::parse(ask(there, "POST", "/api/trace", body).body);
  json b = json::parse(ask(here, "POST", "/api/trace", body).body);
  EXPECT_EQ(a["tokens"], b["tokens"]);
  EXPECT_EQ(a["output"], b["output"]);
  EXPECT_EQ(a["candidates"], b["candidates"]);
  EXPECT_EQ(a["sites"], b["sites"]);
  EXPECT_EQ(a["checkpoint"], "2");
  // Nothing is offered that needs the model.
  EXPECT_FALSE(a.contains("written"));
  EXPECT_FALSE(a.contains("samples"));
  for (const char* what :
       {"/map?layer=1&head=1", "/map?what=rollout&layer=1", "/thumbs?size=8", "/figures", "/cell?query=3&key=2"}) {
    const std::string first = "/api/trace/" + a["id"].get<std::string>(),
                      second = "/api/trace/" + b["id"].get<std::string>();
    EXPECT_EQ(ask(there, "GET", first + what).body, ask(here, "GET", second + what).body) << what;
  }
  const Response refused = ask(there, "POST", "/api/trace", R"({"model": "small", "input": "something else"})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("choose one of its 2 inputs"), std::string::npos) << refused.body;
  const std::string said = message_of<ConfigError>([&] { load_run(folder_ / "there/small", ""); });
  EXPECT_NE(said.find("holds recordings and no model"), std::string::npos) << said;
}

TEST_F(RecordedRun, WhatDoesNotFitTogetherIsRefused) {
  const auto refusal = [](const std::string& metadata, std::vector<SafetensorView> tensors) {
    const TempFolder folder;
    save_safetensors(folder / "r.safetensors", tensors, {{"recordings", metadata}});
    return message_of<IoError>([&] { Recordings::load(folder / "r.safetensors"); });
  };
  const std::vector<float> numbers(24, 1.0F);
  const auto view = [&](const char* name, const Shape& shape) {
    return safetensor_view(name, shape, std::span(numbers).first(static_cast<size_t>(shape.numel())));
  };
  const std::string layer =
      R"({"site": "self", "layer": 0, "rule": {"softcap": 0, "causal": true, "offset": 0, "window_left": -1,
          "window_right": -1, "normaliser": "softmax"}})";
  const auto one = [](const std::string& layers) {
    return R"({"weights": "1", "traces": [{"input": "a", "example": {"source": ["a"], "target": [], "output": ""},
               "layers": [)" +
           layers + "]}]}";
  };
  const SafetensorView q = view("0/0/q", {2, 2, 3}), k = view("0/0/k", {2, 2, 3}), v = view("0/0/v", {2, 2, 3});
  EXPECT_EQ(refusal(one(layer), {q, k, v}), "");
  EXPECT_NE(refusal("{}", {}), "");
  EXPECT_NE(refusal(R"({"weights": "1", "traces": []})", {}).find("no recordings"), std::string::npos);
  EXPECT_NE(refusal(one(layer), {q, k}).find("0/0/v"), std::string::npos);
  EXPECT_NE(refusal(one(layer), {q, view("0/0/k", {2, 2, 2}), v}).find("heads"), std::string::npos);
  EXPECT_NE(refusal(one(layer), {q, view("0/0/k", {2, 3, 3}), v}).find("heads"), std::string::npos);
  EXPECT_NE(refusal(one(layer), {q, k, view("0/0/v", {3, 2, 3})}).find("rows"), std::string::npos);
  EXPECT_NE(refusal(one(layer), {q, k, v, view("0/0/bias", {5, 2, 2})}), "");
  EXPECT_NE(refusal(one(layer), {q, k, v, view("0/0/additive", {4})}), "");
  const std::vector<SafetensorView> two{q, k, v, view("0/1/weights", {1, 2, 2})};
  EXPECT_NE(refusal(one(layer + "," + layer), two).find("differ in size"), std::string::npos);
}

}  // namespace
}  // namespace qkv::routes
