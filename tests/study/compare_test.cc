// Comparisons as a function: results in order, an observer that stops them, and continuing them.
#include "qkv/study/compare.h"

#include <gtest/gtest.h>

#include "io/temp_folder.h"
#include "qkv/base/error.h"

namespace qkv {
namespace {

using testing::message_of;
using testing::TempFolder;

CompareOptions small(const std::string& folder) {
  CompareOptions o{.spec = &find_task("reverse"), .mechanisms = {"none", "dot"}, .settings = {}, .folder = folder};
  o.settings = o.spec->settings();
  for (const auto& [name, value] : {std::pair{"train-size", "256"},
                                    {"validation-size", "32"},
                                    {"hidden", "8"},
                                    {"max-length", "4"},
                                    {"epochs", "2"}}) {
    o.settings.set(name, value);
  }
  return o;
}

/// Stops the second run after its first update.
class Watching final : public RunsObserver, public TrainObserver {
 public:
  explicit Watching(bool stops) : stops_(stops) {}
  TrainObserver* on_start(const std::string& label, const RunFolder&, Task&) override {
    started.push_back(label);
    return this;
  }
  void on_result(const RunFolder&, Task& task, const SessionResult& result) override {
    finished.push_back(result.label);
    EXPECT_EQ(metric_of(task.validate(), "loss"), metric_of(result.training.best, "loss"));
  }
  bool wants_stop() override { return stops_ && started.size() == 2; }
  std::vector<std::string> started, finished;

 private:
  bool stops_;
};

TEST(Compare, StopsWhereItsObserverSaysAndContinuesToTheSameFigures) {
  const TempFolder folder;
  Watching stopping(true), whole(false), again(false);
  const Comparison first = compare(small(folder / "a"), &stopping);
  EXPECT_TRUE(first.interrupted);
  ASSERT_EQ(first.runs.size(), 1u);
  EXPECT_EQ(stopping.started, (std::vector<std::string>{"none", "dot"}));
  EXPECT_EQ(stopping.finished, (std::vector<std::string>{"none"}));
  const Comparison rest = compare(small(folder / "a"), &again), other = compare(small(folder / "b"), &whole);
  ASSERT_EQ(rest.runs.size(), 2u);
  EXPECT_FALSE(rest.interrupted);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(rest.runs[i].evaluation.metrics, other.runs[i].evaluation.metrics) << i;
  const std::string json = comparison_json(small(folder / "a"), rest);
  EXPECT_NE(json.find("\"attention\":\"dot\""), std::string::npos) << json;
}

TEST(Compare, SeveralSeedsAreRunsOfTheirOwn) {
  const TempFolder folder;
  CompareOptions o = small(folder / "s");
  o.seeds = 2;
  const Comparison both = compare(o);
  ASSERT_EQ(both.runs.size(), 4u);
  CompareOptions second = small(folder / "t");
  second.settings.set("seed", "2");
  const Comparison alone = compare(second);
  EXPECT_EQ(both.runs[1].evaluation.metrics, alone.runs[0].evaluation.metrics);  // none, seed 2
  EXPECT_EQ(both.runs[3].evaluation.metrics, alone.runs[1].evaluation.metrics);  // dot, seed 2
  EXPECT_NE(both.runs[0].evaluation.metrics, both.runs[1].evaluation.metrics);
  const std::string json = comparison_json(o, both);
  EXPECT_NE(json.find("\"seeds\":2"), std::string::npos) << json;
  EXPECT_NE(json.find("\"attention\":\"dot\",\"seed\":2"), std::string::npos) << json;
}

TEST(Compare, RefusesWhatCannotBeCompared) {
  const TempFolder folder;
  CompareOptions o = small(folder / "c");
  o.mechanisms = {"dot", "dot"};
  EXPECT_NE(message_of<ConfigError>([&] { compare(o); }).find("given twice"), std::string::npos);
  o.mechanisms = {"cubic"};
  EXPECT_NE(message_of<ConfigError>([&] { compare(o); }).find("--attention"), std::string::npos);
  o.settings = {};
  EXPECT_NE(message_of<ConfigError>([&] { compare(o); }).find("no choice of attention"), std::string::npos);
}

}  // namespace
}  // namespace qkv
