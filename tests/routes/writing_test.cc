// A language model behind the API: drawn tokens, a forced beginning, continuing, and inputs longer than it reads.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "io/temp_folder.h"
#include "qkv/routes/api.h"
#include "qkv/train/run_folder.h"
#include "qkv/train/session.h"

namespace qkv::routes {
namespace {

using nlohmann::json;

constexpr int64_t kBlock = 32;

/// Starts nothing.
class NoTrainings final : public Trainings {
 public:
  std::string start(const TrainingOrder&) override { return ""; }
  void stop(const std::string&) override {}
  bool is_running(const std::string&) override { return false; }
  std::map<std::string, std::string> failures() override { return {}; }
};

class WritingTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<testing::TempFolder>();
    const TaskSpec& spec = find_task("text");
    Settings s = spec.settings();
    for (const auto& [name, value] : {std::pair{"layers", "1"},
                                      {"heads", "2"},
                                      {"width", "16"},
                                      {"generated-size", "100"},
                                      {"steps", "5"},
                                      {"warmup", "1"}}) {
      s.set(name, value);
    }
    s.set("block", std::to_string(kBlock));
    const auto task = spec.make(s, "");
    RunFolder run = RunFolder::create(*folder_ / "text", spec, s, *task);
    run_session(run, *task);
  }
  static void TearDownTestSuite() { folder_.reset(); }

  void SetUp() override {
    models_ = std::make_unique<ModelStore>(std::vector<std::string>{}, folder_->path());
    traces_ = std::make_unique<TraceStore>(*models_);
    add_api(router_, {*models_, *traces_, trainings_});
  }

  json trace(json body, int status = 200) {
    body["model"] = "text";
    const Response r = router_.answer(make_request("POST", "/api/trace", body.dump()));
    EXPECT_EQ(r.status, status) << body << r.body;
    return json::parse(r.body, nullptr, false);
  }

  static std::unique_ptr<testing::TempFolder> folder_;
  std::unique_ptr<ModelStore> models_;
  std::unique_ptr<TraceStore> traces_;
  NoTrainings trainings_;
  Router router_;
};
std::unique_ptr<testing::TempFolder> WritingTest::folder_;

TEST_F(WritingTest, TheSameSeedDrawsTheSameTokensAnotherOneOthers) {
  const json how{{"temperature", 1.5}, {"top_k", 20}, {"top_p", 0.95}, {"seed", 3}};
  const json one = trace({{"input", "the"}, {"sample", how}});
  EXPECT_EQ(one["written"], trace({{"input", "the"}, {"sample", how}})["written"]);
  EXPECT_TRUE(one["samples"]);
  json another = how;
  another["seed"] = 4;
  EXPECT_NE(one["written"], trace({{"input", "the"}, {"sample", another}})["written"]);
  // The likeliest token of one is drawn in any case.
  const json greedy = trace({{"input", "the"}});
  EXPECT_EQ(trace({{"input", "the"}, {"sample", {{"top_k", 1}, {"seed", 9}}}})["written"], greedy["written"]);
  trace({{"input", "the"}, {"sample", {{"temperature", -1}}}}, 400);
  trace({{"input", "the"}, {"sample", {{"temperature", "hot"}}}}, 400);
  trace({{"input", "the"}, {"sample", 3}}, 400);
}

TEST_F(WritingTest, MoreTokensBeginWithTheFewerOnes) {
  const json how{{"temperature", 1.0}, {"seed", 5}};
  const json few = trace({{"input", "the"}, {"sample", how}, {"length", 6}});
  const json more = trace({{"input", "the"}, {"sample", how}, {"length", 18}});
  ASSERT_EQ(few["written"].size(), 6u);
  ASSERT_EQ(more["written"].size(), 18u);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(few["written"][i], more["written"][i]);
  trace({{"input", "the"}, {"length", -1}}, 400);
  trace({{"input", "the"}, {"length", 100000}}, 400);
}

TEST_F(WritingTest, AForcedTokenStandsWhereItWasPutAndTheProbabilitiesBeforeItStay) {
  const json free = trace({{"input", "the"}, {"length", 8}});
  const size_t first = free["first_written"];
  ASSERT_EQ(first, 4u);  // the end of the line before, and three letters
  // What follows token first is candidates[first]; force its second choice as the second token written.
  const json other = free["candidates"][first][1];
  const json forced = trace({{"input", "the"}, {"length", 8}, {"beginning", {free["written"][0], other["id"]}}});
  EXPECT_EQ(forced["written"][1], other["id"]);
  EXPECT_EQ(forced["tokens"]["source"][first + 1], other["token"]);
  EXPECT_EQ(forced["candidates"][first], free["candidates"][first]);
  trace({{"input", "the"}, {"beginning", {1000000}}}, 400);
}

TEST_F(WritingTest, AnInputLongerThanTheModelReadsIsCutAndSaysSo) {
  const json whole = trace({{"input", "the man"}, {"length", 4}});
  EXPECT_FALSE(whole.contains("notice"));
  std::string longer;
  while (longer.size() < 3 * kBlock) longer += "the man sees ";
  const json cut = trace({{"input", longer}, {"length", 4}});
  ASSERT_TRUE(cut.contains("notice"));
  EXPECT_NE(cut["notice"].get<std::string>().find("at most 32 tokens"), std::string::npos) << cut["notice"];
  EXPECT_EQ(cut["written"].size(), 4u);
  EXPECT_LE(cut["tokens"]["source"].size(), static_cast<size_t>(kBlock));
  EXPECT_FALSE(cut["output"].get<std::string>().empty());
  // The likeliest token of the row before each written one is the one that was written: the window is the one it saw.
  const size_t first = cut["first_written"];
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(cut["candidates"][first + i - 1][0]["id"], cut["written"][i]) << i;
}

TEST_F(WritingTest, WritingOnBeyondTheWindowKeepsTheRowsTrue) {
  const json t = trace({{"input", "the"}, {"length", 3 * kBlock}});
  ASSERT_TRUE(t.contains("notice"));
  const auto first = t["first_written"].get<int64_t>();
  EXPECT_LT(first, 0);
  const auto rows = static_cast<int64_t>(t["tokens"]["source"].size());
  for (int64_t row = rows / 4 * 3; row + 1 < rows; ++row) {
    EXPECT_EQ(t["candidates"][static_cast<size_t>(row)][0]["id"], t["written"][static_cast<size_t>(row + 1 - first)]);
  }
}

}  // namespace
}  // namespace qkv::routes
