// Runs opened from C++: the same answers and weights as the task itself gives.
#include "qkv/runs.h"

#include <gtest/gtest.h>

#include <type_traits>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "qkv/train/session.h"

namespace qkv {
namespace {

using testing::message_of;
using testing::TempFolder;

std::string trained(const TempFolder& folder, const char* task,
                    const std::vector<std::pair<std::string, std::string>>& changes) {
  const TaskSpec& spec = find_task(task);
  Settings settings = spec.settings();
  settings.set("epochs", "1");
  for (const auto& [name, value] : changes) settings.set(name, value);
  const std::string path = folder / task;
  OpenedRun run = open_or_create(path, spec, settings);
  run_session(run.folder, *run.task);
  return path;
}

std::string small_reverse(const TempFolder& folder) {
  return trained(folder, "reverse",
                 {{"train-size", "256"},
                  {"validation-size", "32"},
                  {"hidden", "8"},
                  {"max-length", "5"},
                  {"attention", "multi-head"}});
}

static_assert(std::is_nothrow_move_constructible_v<Run> && !std::is_copy_constructible_v<Run>);

TEST(Runs, PredictAsTheTaskDoes) {
  const TempFolder folder;
  const std::string path = small_reverse(folder);
  qkv::Run run = open_run(path);
  EXPECT_EQ(run.task(), "reverse");
  EXPECT_TRUE(run.weights().starts_with(path)) << run.weights();
  const OpenedRun other = load_run(path, "");
  const std::vector<std::string> inputs{"abcd", "dd"};
  const auto want = other.task->predict(inputs, {.beam = 3, .n_best = 3});
  const auto got = run.predict(inputs, {.n_best = 3});
  ASSERT_EQ(got.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(got[i].size(), want[i].size());
    for (size_t k = 0; k < got[i].size(); ++k) {
      EXPECT_EQ(got[i][k].text, want[i][k].text);
      EXPECT_EQ(got[i][k].score, want[i][k].score);
    }
  }
  EXPECT_EQ(run.predict("abcd", {.beam = 3}).text, want[0][0].text);
  EXPECT_NE(message_of<ConfigError>([&] { run.predict("abcd", {.beam = 0}); }).find("beam must be at least 1"),
            std::string::npos);
  const qkv::Run moved = std::move(run);
  EXPECT_EQ(moved.task(), "reverse");
}

TEST(Runs, TraceGivesWeightsOfEveryHead) {
  const TempFolder folder;
  qkv::Run run = open_run(small_reverse(folder), "last");
  const RunTrace trace = run.trace("abcd");
  EXPECT_EQ(trace.source, (std::vector<std::string>{"a", "b", "c", "d"}));
  ASSERT_EQ(trace.attention.size(), 1u);
  const RunAttention& a = trace.attention[0];
  EXPECT_EQ(a.keys, trace.source);
  EXPECT_EQ(a.queries, trace.target);
  EXPECT_EQ(a.weights.shape(), (Shape{4, static_cast<int64_t>(trace.target.size()), 4}));
  const std::vector<float> w = a.weights.to_vector();
  for (size_t i = 0; i < w.size(); i += 4) EXPECT_NEAR(w[i] + w[i + 1] + w[i + 2] + w[i + 3], 1, 1e-5) << i;
  EXPECT_FALSE(run.examples(3).empty());
}

TEST(Runs, TextIsDrawnAndOtherTasksSayTheyDoNot) {
  const TempFolder folder;
  qkv::Run text = open_run(trained(
      folder, "text", {{"generated-size", "100"}, {"layers", "1"}, {"width", "8"}, {"heads", "1"}, {"block", "16"}}));
  const DecodeOptions how{.max_length = 12, .sample = SampleOptions{.temperature = 0.8, .seed = 3}};
  EXPECT_EQ(text.predict("A", how).text, text.predict("A", how).text);
  qkv::Run reverse = open_run(small_reverse(folder));
  EXPECT_NE(message_of<ConfigError>([&] { reverse.predict("abcd", how); }).find("does not draw"), std::string::npos);
}

TEST(Runs, WhatCannotBeOpenedIsNamed) {
  const TempFolder folder;
  EXPECT_NE(message_of<IoError>([&] { open_run(folder / "none"); }).find("no run in"), std::string::npos);
}

}  // namespace
}  // namespace qkv
