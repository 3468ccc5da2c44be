// Learning-rate schedules: warm-up, shape, ends.
#include "qkv/optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "io/temp_folder.h"
#include "qkv/base/error.h"

namespace qkv {
namespace {

TEST(Schedule, WarmUpRisesInEqualSteps) {
  for (const std::string& name : choices<ScheduleKind>()) {
    const Schedule s{parse<ScheduleKind>(name), 0.4, 4, 20, 0.1};
    for (int t = 0; t < 4; ++t) EXPECT_DOUBLE_EQ(learning_rate(s, t), 0.1 * (t + 1)) << name;
  }
}

TEST(Schedule, Shapes) {
  const auto at = [](ScheduleKind kind, int64_t t) { return learning_rate({kind, 2, 10, 110, 0.1}, t); };
  EXPECT_DOUBLE_EQ(at(ScheduleKind::constant, 1000), 2);
  EXPECT_DOUBLE_EQ(at(ScheduleKind::linear, 10), 2);
  EXPECT_DOUBLE_EQ(at(ScheduleKind::linear, 60), 1.1);
  EXPECT_DOUBLE_EQ(at(ScheduleKind::linear, 110), 0.2);
  EXPECT_DOUBLE_EQ(at(ScheduleKind::linear, 5000), 0.2);
  EXPECT_DOUBLE_EQ(at(ScheduleKind::cosine, 10), 2);
  EXPECT_DOUBLE_EQ(at(ScheduleKind::cosine, 60), 1.1);
  EXPECT_DOUBLE_EQ(at(ScheduleKind::cosine, 110), 0.2);
  EXPECT_DOUBLE_EQ(at(ScheduleKind::inverse_sqrt, 39), 1);
  EXPECT_DOUBLE_EQ(at(ScheduleKind::inverse_sqrt, 9), 2);
}

TEST(Schedule, WithoutWarmUp) {
  EXPECT_DOUBLE_EQ(learning_rate({ScheduleKind::inverse_sqrt, 1, 0, 1, 0}, 3), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate({ScheduleKind::cosine, 1, 0, 10, 0}, 0), 1);
  EXPECT_DOUBLE_EQ(learning_rate({ScheduleKind::linear, 1, 8, 4, 0}, 100), 0);
}

TEST(Schedule, UnknownNameListsThoseThatExist) {
  EXPECT_EQ(testing::message_of<ConfigError>([] { parse<ScheduleKind>("step"); }),
            "unknown schedule 'step'; available: constant, linear, cosine, inverse-sqrt");
}

}  // namespace
}  // namespace qkv
