// Task reverse: it learns with attention, predicts, traces and evaluates by length; its figures are what they say.
#include "qkv/tasks/reverse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "qkv/nn/attention.h"
#include "qkv/report/trace_maps.h"
#include "qkv/train/session.h"
#include "qkv/train/trainer.h"
#include "support/settings.h"

namespace qkv {
namespace {

using testing::message_of;

Settings small(testing::Changes changes = {}) {
  return testing::changed(
      testing::changed(
          reverse_settings(),
          {{"max-length", "6"}, {"train-size", "800"}, {"validation-size", "80"}, {"hidden", "32"}, {"batch", "32"}}),
      changes);
}

TEST(Reverse, LearnsWithAttention) {
  const Settings s = small();
  const auto task = make_reverse(s, "");
  const double before = metric_of(task->validate(), "loss");
  EXPECT_NEAR(before, std::log(6.0), 0.4);
  const TrainResult result = Trainer(*task, trainer_options(s)).run();
  EXPECT_GE(metric_of(result.best, "exact_match"), 0.95);

  // What validate() says is what predict() does.
  const std::vector<std::string> inputs = task->examples(10);
  const auto answers = task->predict(inputs, {});
  int right = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    right += answers[i].front().text == std::string(inputs[i].rbegin(), inputs[i].rend());
    EXPECT_LE(answers[i].front().score, 0);
  }
  EXPECT_GE(right, 9);

  // The weights lie on the anti-diagonal: writing letter i, it looks near letter n-1-i.
  const TracedExample traced = task->trace("abcdab");
  ASSERT_EQ(traced.output, "badcba");
  const HeatMap map = maps_of(traced).front();
  EXPECT_EQ(map.rows, 7);
  EXPECT_EQ(map.columns, 6);
  EXPECT_EQ(map.column_labels, (std::vector<std::string>{"a", "b", "c", "d", "a", "b"}));
  EXPECT_EQ(map.row_labels.back(), "end");
  double near = 0;
  for (int64_t i = 0; i < 6; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < 6; ++j) {
      const float w = map.values[static_cast<size_t>(i * 6 + j)];
      sum += w;
      if (std::abs(j - (5 - i)) <= 1) near += w / 6;
    }
    EXPECT_NEAR(sum, 1, 1e-5);
  }
  EXPECT_GT(near, 0.6);
}

TEST(Reverse, EvaluatesByLengthToTwiceTheTrained) {
  const auto task = make_reverse(small(), "");
  const Evaluation e = task->evaluate("");
  ASSERT_EQ(e.breakdowns.size(), 1u);
  const Breakdown& b = e.breakdowns[0];
  EXPECT_EQ(b.name, "exact_match_by_length");
  EXPECT_EQ(b.trained_to, 6);
  EXPECT_EQ(b.x.back(), 12);
  EXPECT_TRUE(std::is_sorted(b.x.begin(), b.x.end()));
  int64_t trained = 0, longer = 0;
  double exact = 0;
  for (size_t i = 0; i < b.x.size(); ++i) {
    (b.x[i] <= 6 ? trained : longer) += b.counts[i];
    if (b.x[i] <= 6) exact += b.y[i] * static_cast<double>(b.counts[i]);
  }
  EXPECT_EQ(trained, 80);
  EXPECT_EQ(longer, 6 * 25);
  EXPECT_NEAR(exact / 80, metric_of(e.metrics, "exact_match"), 1e-12);
  EXPECT_FALSE(e.errors.empty());
  for (const Case& c : e.errors) {
    EXPECT_EQ(c.expected, std::string(c.input.rbegin(), c.input.rend()));
    EXPECT_NE(c.expected, c.predicted);
  }
}

TEST(Reverse, EveryMechanismTrainsAndTraces) {
  for (const AttentionSpec& spec : attention_table()) {
    if (!spec.in_cross) continue;
    const Settings s = small({{"attention", spec.name}, {"steps", "12"}, {"epochs", "1"}, {"train-size", "400"}});
    const auto task = make_reverse(s, "");
    const double before = metric_of(task->validate(), "loss");
    const TrainResult result = Trainer(*task, trainer_options(s)).run();
    EXPECT_LT(metric_of(result.validation, "loss"), before) << spec.name;
    {
      const int threads = num_threads();
      set_num_threads(threads == 1 ? 2 : 1);
      const auto other = make_reverse(s, "");
      Trainer(*other, trainer_options(s)).run();
      set_num_threads(threads);
      const auto a = parameters_of(*task), b = parameters_of(*other);
      for (size_t i = 0; i < a.size(); ++i) {
        EXPECT_EQ(a[i].value.to_vector(), b[i].value.to_vector()) << spec.name << " " << a[i].name;
      }
    }
    const TracedExample traced = task->trace("abca");
    if (std::string(spec.name) == "none") {
      EXPECT_TRUE(traced.attention.empty());
    } else {
      ASSERT_FALSE(traced.attention.empty()) << spec.name;
      EXPECT_EQ(traced.attention[0].Lk, 4) << spec.name;
      EXPECT_EQ(traced.attention[0].Lq, static_cast<int64_t>(traced.target.size())) << spec.name;
    }
  }
}

TEST(Reverse, BatchesCoverTheDataOnceInAnOrderOfSeedAndEpoch) {
  const auto a = make_reverse(small(), ""), b = make_reverse(small(), "");
  EXPECT_EQ(a->batches_in_epoch(3), 25);
  Context ctx_a(1, 0), ctx_b(1, 0);
  a->train_batch(0, 0, ctx_a);
  const double first = a->train_batch(3, 7, ctx_a).loss.item();
  EXPECT_EQ(b->train_batch(3, 7, ctx_b).loss.item(), first);
  int64_t targets = 0;
  for (int64_t i = 0; i < 25; ++i) targets += a->train_batch(4, i, ctx_a).targets;
  int64_t again = 0;
  for (int64_t i = 0; i < 25; ++i) again += a->train_batch(5, i, ctx_a).targets;
  EXPECT_EQ(targets, again);
}

TEST(Reverse, RefusesWhatItCannotRead) {
  const auto task = make_reverse(small(), "");
  EXPECT_NE(message_of<ConfigError>([&] { task->trace("abx"); }).find("'x' (U+0078)"), std::string::npos);
  EXPECT_NE(message_of<ConfigError>([&] { task->trace(""); }).find("empty"), std::string::npos);
  const std::vector<std::string> bad{"ab", "a b"};
  EXPECT_NE(message_of<ConfigError>([&] { task->predict(bad, {}); }).find("letter 2"), std::string::npos);
}

}  // namespace
}  // namespace qkv
