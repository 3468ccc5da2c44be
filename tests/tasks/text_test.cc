// Task text: it learns a text, continues it reproducibly, and says what a vocabulary lacks.
#include "qkv/tasks/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "qkv/io/file.h"
#include "qkv/train/session.h"

namespace qkv {
namespace {

using testing::message_of;
using testing::TempFolder;

double figure(const Metrics& metrics, const std::string& name) {
  for (const auto& [key, value] : metrics) {
    if (key == name) return value;
  }
  return std::nan("");
}

Settings small(const std::string& data, const char* tokenizer) {
  Settings s = text_settings();
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, const char*>>{
           {"width", "32"}, {"layers", "1"}, {"heads", "2"}, {"block", "16"}, {"lr", "0.01"}, {"epochs", "8"}}) {
    s.set(name, value);
  }
  s.set("data", data);
  s.set("tokenizer", tokenizer);
  return s;
}

std::string rhyme(int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += "the bold rat sat\non a mat of tin\n";
  return text;
}

TEST(Text, LearnsATextAndWritesOn) {
  const TempFolder folder;
  write_file_atomic(folder / "a.txt", std::string_view(rhyme(200)));
  const Settings s = small(folder / "a.txt", "char");
  const auto task = make_text(s, "");
  const double before = figure(task->validate(), "loss");
  Trainer(*task, trainer_options(s)).run();
  const Metrics after = task->validate();
  EXPECT_LT(figure(after, "loss"), before / 5);
  EXPECT_NEAR(figure(after, "perplexity"), std::exp(figure(after, "loss")), 1e-9);
  // One character per token here, so a character has loss / ln 2 bits, up to the first one of the text.
  EXPECT_NEAR(figure(after, "bits_per_character"), figure(after, "loss") / std::log(2.0), 0.01);

  const DecodeOptions greedy{.max_length = 60, .sample = SampleOptions{.temperature = 0}};
  const std::vector<std::string> start{"the bold"};
  const std::string written = task->predict(start, greedy)[0][0].text;
  // Longer than the model's block: the window slides.
  EXPECT_EQ(written.substr(0, 24), " rat sat\non a mat of tin") << written;
  EXPECT_GE(written.size(), 60u);

  const auto drawn = [&](uint64_t seed) {
    return task->predict(start, {.max_length = 40, .sample = SampleOptions{.temperature = 3, .seed = seed}})[0][0].text;
  };
  EXPECT_EQ(drawn(1), drawn(1));
  EXPECT_NE(drawn(1), drawn(2));
  EXPECT_THROW(task->predict(start, {.beam = 2}), ConfigError);
}

TEST(Text, SubwordsAndAssets) {
  const TempFolder folder;
  write_file_atomic(folder / "a.txt", std::string_view(rhyme(60)));
  Settings s = small(folder / "a.txt", "bpe");
  s.set("vocabulary", "40");
  s.set("epochs", "1");
  const auto task = make_text(s, "");
  task->save_assets(folder.path());
  const auto again = make_text(s, folder.path());
  const std::vector<std::string> start{"the bold"};
  const DecodeOptions how{.max_length = 5, .sample = SampleOptions{.seed = 4}};
  EXPECT_EQ(task->predict(start, how)[0][0].text, again->predict(start, how)[0][0].text);
  EXPECT_FALSE(task->trace("on a").attention.empty());
  EXPECT_FALSE(task->examples(2).empty());
}

TEST(Text, ARunMayCarryItsText) {
  const TempFolder folder;
  write_file_atomic(folder / "a.txt", std::string_view(rhyme(60)));
  Settings s = small(folder / "a.txt", "char");
  s.set("epochs", "1");
  s.set("carry", "true");
  {
    OpenedRun run = open_or_create(folder / "run", find_task("text"), s);
    run_session(run.folder, *run.task);
  }
  const double loss = figure(load_run(folder / "run", "").task->validate(), "loss");
  std::filesystem::remove(folder / "a.txt");
  EXPECT_EQ(figure(load_run(folder / "run", "").task->validate(), "loss"), loss);
  RunFolder again = RunFolder::open(folder / "run");
  again.change("epochs", "2");
  const auto task = again.make_task();
  EXPECT_GT(run_session(again, *task).training.state.step, 0);
  // Without a copy the file is needed.
  s.set("carry", "false");
  EXPECT_THROW(make_text(s, ""), IoError);
}

TEST(Text, EvaluatesOtherTexts) {
  const TempFolder folder;
  write_file_atomic(folder / "a.txt", std::string_view(rhyme(60)));
  const auto task = make_text(small(folder / "a.txt", "char"), "");
  write_file_atomic(folder / "b.txt", std::string_view("zzz\n"));
  const Evaluation e = task->evaluate(folder / "b.txt");
  ASSERT_EQ(e.notes.size(), 1u);
  EXPECT_NE(e.notes[0].find("3 of 4 tokens are not in the vocabulary"), std::string::npos) << e.notes[0];
  write_file_atomic(folder / "c.txt", std::string_view("ok\n\xff\n"));
  EXPECT_NE(message_of<IoError>([&] { task->evaluate(folder / "c.txt"); }).find("c.txt:2: not UTF-8"),
            std::string::npos);
}

}  // namespace
}  // namespace qkv
