// What the table of tasks says of every task: its inputs, and what clients may set.
#include <gtest/gtest.h>

#include <set>

#include "qkv/tasks/task.h"

namespace qkv {
namespace {

TEST(TaskTable, ClientsMayChooseTheModelButNoFile) {
  const std::set<std::string> files{"data",    "from",    "from-weights", "train-src", "train-tgt",
                                    "val-src", "val-tgt", "test-src",     "test-tgt"};
  for (const TaskSpec& spec : task_table()) {
    const Settings settings = spec.settings();
    for (const Setting& s : settings.all()) {
      const bool file = s.kind == SettingKind::path || files.count(s.name) > 0;
      EXPECT_FALSE(file && s.client) << spec.name << " " << s.name;
      EXPECT_FALSE(s.kind == SettingKind::text && s.client && s.name != "alphabet") << spec.name << " " << s.name;
    }
    Settings set = settings;
    EXPECT_NO_THROW(set.set_by_client("epochs", "1")) << spec.name;
    EXPECT_THROW(set.set_by_client("from", "/etc"), ConfigError) << spec.name;
  }
}

TEST(TaskTable, OnlyAPictureMayNameAFileAndThenNotForClients) {
  EXPECT_EQ(find_task("images").input, InputKind::picture);
  EXPECT_EQ(find_task("knowledge").input, InputKind::question);
  EXPECT_EQ(find_task("translate").input, InputKind::text);
  for (const char* safe : {"val:3", "test:0", "data:image/png;base64,AAAA"}) {
    EXPECT_TRUE(names_no_file(InputKind::picture, safe)) << safe;
  }
  for (const char* path : {"shoe.png", "/etc/passwd", "", "VAL:3"}) {
    EXPECT_FALSE(names_no_file(InputKind::picture, path)) << path;
    EXPECT_TRUE(names_no_file(InputKind::text, path)) << path;
  }
}

TEST(Metrics, EachSaysHowItIsRead) {
  EXPECT_TRUE(metric_kind("exact_match").share);
  EXPECT_TRUE(metric_kind("exact_match").higher_is_better);
  EXPECT_FALSE(metric_kind("bleu").share);
  EXPECT_TRUE(metric_kind("bleu").higher_is_better);
  EXPECT_EQ(metric_kind("test_2016_flickr_bleu").name, "bleu");
  EXPECT_EQ(metric_kind("test_loss_per_word").name, "loss_per_word");
  // A name that only looks like one: no share by its letters.
  EXPECT_FALSE(metric_kind("mismatches").share);
  EXPECT_FALSE(metric_kind("inaccuracy").share);
  // Every figure that a task trains for is in the table.
  for (const char* goal : {"loss", "exact_match", "accuracy", "bleu"}) EXPECT_EQ(metric_kind(goal).name, goal);
}

}  // namespace
}  // namespace qkv
