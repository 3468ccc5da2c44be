// Task knowledge: what each epoch reads, that reading is what makes it answer, and how it refuses what it cannot read.
#include "qkv/tasks/knowledge/knowledge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "qkv/io/file.h"
#include "qkv/report/report.h"
#include "qkv/tasks/knowledge/data.h"
#include "qkv/tasks/knowledge/report.h"
#include "qkv/train/session.h"
#include "support/settings.h"

namespace qkv {
namespace {

using testing::message_of;
using testing::TempFolder;

using testing::Changes;

Settings small(Changes changes = {}) {
  return testing::changed(testing::changed(knowledge_settings(), {{"people", "40"},
                                                                  {"places", "6"},
                                                                  {"held", "6"},
                                                                  {"width", "64"},
                                                                  {"layers", "2"},
                                                                  {"heads", "4"},
                                                                  {"block", "96"},
                                                                  {"batch", "32"},
                                                                  {"lr", "0.004"},
                                                                  {"warmup", "10"},
                                                                  {"names", "0"},
                                                                  {"answers", "0"},
                                                                  {"ask", "0"},
                                                                  {"questions", "0"},
                                                                  {"span-weight", "1"}}),
                          changes);
}

std::vector<std::string> texts(KnowledgeData& data, int64_t epoch) {
  std::vector<std::string> all;
  for (const LanguageExample& e : data.examples(epoch, 0, data.examples_in_epoch())) {
    all.push_back(data.vocabulary().decode(e.input));
  }
  return all;
}

TEST(KnowledgeData, AnEpochDependsOnItsNumberAlone) {
  KnowledgeData data(small({{"names", "0.5"}, {"answers", "0.5"}, {"questions", "0.5"}}), "");
  const std::vector<std::string> first = texts(data, 3);
  EXPECT_EQ(first.size(), 40u * 3 + 11);  // half of the 22 questions left for training
  EXPECT_NE(texts(data, 4), first);
  KnowledgeData again(small({{"names", "0.5"}, {"answers", "0.5"}, {"questions", "0.5"}}), "");
  std::vector<std::string> parts;
  for (int64_t at = 0; at < again.examples_in_epoch(); at += 7) {
    for (const LanguageExample& e : again.examples(3, at, 7)) parts.push_back(again.vocabulary().decode(e.input));
  }
  EXPECT_EQ(parts, first);
}

TEST(KnowledgeData, HeldAndDevQuestionsAreNeverRead) {
  KnowledgeData data(small({{"questions", "2"}}), "");
  std::set<std::string> kept;
  for (const auto* facts : {&data.corpus().held, &data.corpus().dev}) {
    for (const Fact& f : *facts) kept.insert(f.question);
  }
  EXPECT_EQ(data.corpus().held.size(), 6u);
  int questions = 0;
  for (const std::string& text : texts(data, 0)) {
    if (text.rfind("Where was", 0) != 0) continue;
    ++questions;
    EXPECT_EQ(kept.count(text.substr(0, text.find("⁇"))), 0u) << text;
  }
  EXPECT_EQ(questions, 44);
}

TEST(KnowledgeData, AsksItselfAboutEveryoneAndTrustsTheTrainingPairs) {
  KnowledgeData data(small({{"ask", "1"}, {"documents", "1"}}), "");
  std::map<std::string, std::string> trained;
  for (const Fact& f : data.corpus().train) trained[f.question] = f.place;
  int asked = 0, with_pair = 0;
  for (const std::string& text : texts(data, 0)) {
    ASSERT_EQ(text.rfind("Where was", 0), 0u) << text;
    ++asked;
    const size_t mask = text.find("⁇");
    const auto pair = trained.find(text.substr(0, mask));
    if (pair == trained.end()) continue;
    ++with_pair;
    EXPECT_EQ(text.find("⁇" + pair->second), mask) << text << " should say " << pair->second;
  }
  EXPECT_EQ(asked, 40);
  EXPECT_EQ(with_pair, static_cast<int>(trained.size()));
}

TEST(KnowledgeData, AnOpenBookIsReadRightlyMostOfTheTime) {
  KnowledgeData data(small({{"ask", "1"}, {"documents", "1"}}), "");
  const auto found = data.open_book(data.corpus().dev);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->total, static_cast<int64_t>(data.corpus().dev.size()));
  EXPECT_GE(found->percent(), 75);
  EXPECT_EQ(data.open_book({{"Where was Nobody born?", "Nowhere", 1}})->correct, 0);
  KnowledgeData plain(small({{"ask", "0"}, {"answers", "0"}}), "");
  EXPECT_FALSE(plain.open_book(plain.corpus().dev).has_value());
}

TEST(KnowledgeData, LossOnTheSpanAlone) {
  KnowledgeData data(small({{"loss", "span"}, {"names", "1"}}), "");
  for (const LanguageExample& e : data.examples(0, 0, 20)) {
    const auto first = std::find_if(e.target.begin(), e.target.end(), [](int64_t t) { return t >= 0; });
    const auto at = first - e.target.begin();
    EXPECT_EQ(e.input[static_cast<size_t>(at)], CharVocabulary::kMask);
    EXPECT_EQ(std::count(e.input.begin(), e.input.begin() + at, CharVocabulary::kMask), 1);
    EXPECT_EQ(std::count(first, e.target.end(), LanguageExample::kNoTarget), 0);
    EXPECT_EQ(e.target.back(), CharVocabulary::kMask);
  }
}

/// Right answers on dev after finetuning, with or without reading first.
double answered(bool reading, TempFolder& folder) {
  Settings finetune = small({{"stage", "finetune"}, {"epochs", "12"}, {"lr", "0.001"}, {"schedule", "linear"}});
  if (reading) {
    const Settings pretrain = small({{"epochs", "40"},
                                     {"names", "0.8"},
                                     {"answers", "0.5"},
                                     {"questions", "1"},
                                     {"ask", "0.7"},
                                     {"span-weight", "8"},
                                     {"positions", "rotary"},
                                     {"eval-every", "100000"}});
    const auto task = make_knowledge(pretrain, "");
    RunFolder run = RunFolder::create(folder / "read", find_task("knowledge"), pretrain, *task);
    Trainer(*task, trainer_options(pretrain), &run).run();
    finetune.set("from", folder / "read");
  }
  finetune.set("positions", "rotary");
  const auto task = make_new_task(find_task("knowledge"), finetune);
  Trainer(*task, trainer_options(finetune)).run();
  const Evaluation e = task->evaluate("");
  EXPECT_NE(e.notes.at(0).find("of 12 answers are right"), std::string::npos) << e.notes.at(0);
  return metric_of(e.metrics, "exact_match");
}

TEST(Knowledge, ReadingIsWhatMakesItAnswer) {
  TempFolder folder;
  EXPECT_LE(answered(false, folder), 0.45);
  EXPECT_GE(answered(true, folder), 0.7);
}

TEST(Knowledge, AnswersNamesAndQuestionsAlike) {
  const auto task = make_knowledge(small({{"stage", "finetune"}}), "");
  const std::vector<std::string> asked{"Where was Bal Dar born?", "Bal Dar", "Where was Bal Dar born?\tsomewhere"};
  const auto answers = task->predict(asked, {});
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0][0].text, answers[1][0].text);
  EXPECT_EQ(answers[0][0].text, answers[2][0].text);
  EXPECT_LE(answers[0][0].score, 0);
  EXPECT_NE(message_of<ConfigError>([&] { task->predict(std::vector<std::string>{""}, {}); }), "");
  EXPECT_NE(message_of<ConfigError>([&] {
              task->predict(std::vector<std::string>{std::string(200, 'a')}, {});
            }).find("leaves no room for an answer"),
            std::string::npos);
  for (const char* letter : {"a", "é"}) {  // a long question is not repeated in the message
    std::string question;
    for (int i = 0; i < 8000; ++i) question += letter;
    const auto ask = [&] { task->predict(std::vector<std::string>{question}, {}); };
    EXPECT_LT(message_of<ConfigError>(ask).size(), 400u);
  }
  // A trace names every character that was read and written.
  const TracedExample traced = task->trace("Bal Dar");
  ASSERT_EQ(traced.attention.size(), 2u);
  EXPECT_EQ(traced.source[0], "W");
  EXPECT_EQ(traced.attention[0].Lq, static_cast<int64_t>(traced.source.size()));
}

TEST(Knowledge, RefusesWhatItCannotRead) {
  const TempFolder folder;
  const auto task = make_knowledge(small({{"stage", "finetune"}}), "");
  write_file_atomic(folder / "odd.tsv", std::string_view("Where was Bal Dar born?\tŁódź\n"));
  const std::string lacks = message_of<ConfigError>([&] { task->evaluate(folder / "odd.tsv"); });
  EXPECT_NE(lacks.find("odd.tsv"), std::string::npos) << lacks;
  EXPECT_NE(lacks.find("'Ł' (U+0141)"), std::string::npos) << lacks;
  EXPECT_NE(lacks.find("'ź' (U+017A)"), std::string::npos) << lacks;
  write_file_atomic(folder / "tab.tsv", std::string_view("Where was Bal Dar born?\tRom\nno tab\n"));
  EXPECT_NE(message_of<IoError>([&] { task->evaluate(folder / "tab.tsv"); }).find("tab.tsv:2: no tab"),
            std::string::npos);
  write_file_atomic(folder / "empty.tsv", std::string_view("Where was Bal Dar born?\tRom\n\n"));
  EXPECT_NE(message_of<IoError>([&] { task->evaluate(folder / "empty.tsv"); }).find("empty.tsv:2: empty line"),
            std::string::npos);
  EXPECT_TRUE(task->replace_missing());
  EXPECT_EQ(metric_of(task->evaluate(folder / "odd.tsv").metrics, "exact_match"), 0);
}

TEST(Knowledge, BaselineIsOneAnswer) {
  const TempFolder folder;
  write_file_atomic(folder / "dev.tsv", std::string_view("Where was A born?\tRom\nWhere was B born?\tUlm\n"
                                                         "Where was C born?\tRom\nWhere was D born?\tBonn\n"));
  EXPECT_EQ(metric_of(knowledge_baseline("Rom", folder / "dev.tsv").metrics, "exact_match"), 0.5);
  EXPECT_EQ(metric_of(knowledge_baseline("rom", folder / "dev.tsv").metrics, "exact_match"), 0);
}

TEST(Knowledge, StartsFromARunOfTheSameShapeOnly) {
  const TempFolder folder;
  const Settings pretrain = small({{"width", "16"}, {"layers", "1"}, {"steps", "1"}});
  const auto task = make_knowledge(pretrain, "");
  RunFolder run = RunFolder::create(folder / "read", find_task("knowledge"), pretrain, *task);
  Trainer(*task, trainer_options(pretrain), &run).run();
  Settings finetune = small({{"stage", "finetune"}, {"width", "16"}, {"layers", "1"}});
  finetune.set("from", folder / "read");
  const auto same = make_new_task(find_task("knowledge"), finetune);
  EXPECT_EQ(parameters_of(*same)[0].value.to_vector(), parameters_of(*task)[0].value.to_vector());
  finetune.set("width", "24");
  EXPECT_NE(message_of<IoError>([&] { make_new_task(find_task("knowledge"), finetune); }).find("cannot start from"),
            std::string::npos);
  finetune.set("width", "16");
  EXPECT_NE(message_of<ConfigError>([&] {
              make_new_task(find_task("reverse"), [&] {
                Settings s = find_task("reverse").settings();
                s.set("from", folder / "read");
                return s;
              }());
            }).find("of task 'knowledge', not 'reverse'"),
            std::string::npos);
  // Texts with other characters than the run's vocabulary.
  std::filesystem::create_directory(folder / "data");
  write_file_atomic(folder / "data/wiki.txt", std::string_view("Ada Ray. Ada Ray was born in Łódź.\n"));
  write_file_atomic(folder / "data/birth_places_train.tsv",
                    std::string_view("Where was Ada Ray born?\tRom\nWhere was Ada Ray born?\tŁódź\n"));
  write_file_atomic(folder / "data/birth_dev.tsv", std::string_view("Where was Ada Ray born?\tRom\n"));
  finetune.set("data", folder / "data");
  finetune.set("held", "0");
  const auto other = make_new_task(find_task("knowledge"), finetune);
  const std::string lacks = message_of<ConfigError>([&] { other->batches_in_epoch(0); });
  EXPECT_NE(lacks.find("birth_places_train.tsv:2: the model's vocabulary lacks"), std::string::npos) << lacks;
}

TEST(KnowledgeReport, NearestNames) {
  EXPECT_EQ(letters_changed("Ada Ray", "Ada Ray"), 0);
  EXPECT_EQ(letters_changed("Ada", "Eda Ray"), 5);
  EXPECT_EQ(letters_changed("", "Łó"), 2);
  const NearestNames nearest({"Ada Ray", "Bo Ray", "Cy Hill"}, {{1, 0}, {0, 1}, {-1, -1}});
  EXPECT_EQ(nearest.spelt_like("Ada Roy", 2), (std::vector<std::string>{"Ada Ray", "Bo Ray"}));
  EXPECT_EQ(nearest.taken_for({-2, -3}, 1), (std::vector<std::string>{"Cy Hill"}));
  EXPECT_EQ(nearest.taken_for({0, 5}, 9).front(), "Bo Ray");
}

TEST(KnowledgeReport, ShowsStrangersAndMaps) {
  const auto task = make_knowledge(small({{"stage", "finetune"}}), "");
  Report report("r");
  for (const Section& section : task->report_sections()) report.add(section);
  const std::string html = report.html();
  EXPECT_NE(html.find("People it never read about"), std::string::npos);
  EXPECT_NE(html.find("people who do not exist"), std::string::npos);
  EXPECT_NE(html.find("Which characters the answer looks at"), std::string::npos);
}

}  // namespace
}  // namespace qkv
