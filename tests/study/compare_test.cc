// Comparisons as a function: results in order, an observer that stops them, and continuing where they stand.
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

TEST(Compare, RefusesWhatCannotBeCompared) {
  const TempFolder folder;
  CompareOptions o = small(folder / "c");
  o.mechanisms = {"dot", "dot"};
  EXPECT_NE(message_of<ConfigError>([&] { compare(o); }).find("there twice"), std::string::npos);
  o.mechanisms = {"cubic"};
  EXPECT_NE(message_of<ConfigError>([&] { compare(o); }).find("--attention"), std::string::npos);
  o.settings = {};
  EXPECT_NE(message_of<ConfigError>([&] { compare(o); }).find("no choice of attention"), std::string::npos);
}

}  // namespace
}  // namespace qkv
