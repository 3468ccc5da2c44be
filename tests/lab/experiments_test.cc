// Every experiment with its default settings: predictions and measurements agree.
#include <gtest/gtest.h>

#include <cmath>

#include "qkv/base/error.h"
#include "qkv/lab/experiment.h"

namespace qkv::lab {
namespace {

TEST(Experiments, EveryPredictionAgreesWithItsMeasurement) {
  for (const Experiment& e : experiment_table()) {
    const Result r = e.run(e.settings());
    EXPECT_FALSE(r.claim.empty()) << e.name;
    EXPECT_FALSE(r.formula.empty()) << e.name;
    EXPECT_FALSE(r.rows.empty()) << e.name;
    for (const Row& row : r.rows) {
      if (row.kind == Kind::timed) continue;  // a busy machine must not fail a test
      EXPECT_TRUE(row.agrees()) << e.name << ": " << row.at << ", " << row.quantity << ": predicted " << row.predicted
                                << ", measured " << row.measured << ", standard error " << row.standard_error;
    }
  }
}

}  // namespace
}  // namespace qkv::lab
