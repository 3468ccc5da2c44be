// The knowledge study and language models as a user runs them.
#include <gtest/gtest.h>

#include <filesystem>

#include "app/run_program.h"
#include "qkv/io/file.h"

namespace qkv {
namespace {

using testing::expect_refused;
using testing::ProgramRun;
using testing::run_program;
using testing::TempFolder;

std::vector<std::string> study(const std::string& out) {
  return {"study",          "knowledge", "--people",    "24",          "--places",        "4",
          "--held",         "4",         "--documents", "1",           "--width",         "16",
          "--layers",       "1",         "--heads",     "2",           "--block",         "96",
          "--epochs",       "4",         "--moments",   "2",           "--batch",         "16",
          "--threads",      "1",         "--rows",      "none,rotary", "--answer-epochs", "1",
          "--alone-epochs", "2",         "--schedule",  "constant",    "--out",           out};
}

TEST(StudyCommand, TrainsEveryRowAndGoesOn) {
  const TempFolder folder;
  const ProgramRun first = run_program(study(folder / "a"));
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_NE(first.out.find("rotary"), std::string::npos) << first.out;
  EXPECT_NE(first.out.find("right on dev"), std::string::npos) << first.out;
  const std::string report = read_text(folder / "a/report.html");
  EXPECT_NE(report.find("People it never read about"), std::string::npos);
  EXPECT_NE(report.find("machine hours"), std::string::npos);
  for (const char* part :
       {"Right answers over epochs", "The recipe", "of which this study took the first", "answer-lr"}) {
    EXPECT_NE(report.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(report.find("never saw"), std::string::npos);
  EXPECT_EQ(first.out.find("text open before it"), std::string::npos) << first.out;  // no reader is used
  for (const char* part : {"none", "rotary/reading", "rotary/answers-2", "rotary/answers-4"}) {
    EXPECT_TRUE(std::filesystem::exists(folder / ("a/" + std::string(part) + "/config.json"))) << part;
  }
  // Going on with more epochs keeps what is there and adds to it; weights are those of a study that never stopped.
  const ProgramRun more = run_program({"study", "--resume", folder / "a", "--epochs", "8", "--moments", "1", "--json"});
  ASSERT_EQ(more.code, 0) << more.err;
  EXPECT_NE(more.out.find("answers-8"), std::string::npos) << more.out;
  EXPECT_NE(more.out.find("answers-2"), std::string::npos) << more.out;
  std::vector<std::string> whole = study(folder / "b");
  whole.insert(whole.end(), {"--epochs", "8", "--moments", "1"});
  ASSERT_EQ(run_program(whole).code, 0);
  std::string last_a, last_b;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "a/rotary/reading/checkpoints"))
    last_a = std::max(last_a, entry.path().string());
  for (const auto& entry : std::filesystem::directory_iterator(folder / "b/rotary/reading/checkpoints"))
    last_b = std::max(last_b, entry.path().string());
  EXPECT_EQ(read_text(last_a + "/model.safetensors"), read_text(last_b + "/model.safetensors"));
}

TEST(StudyCommand, TheCoursesRecipeReadsHiddenSpansOnly) {
  const TempFolder folder;
  std::vector<std::string> command = study(folder / "a");
  command.insert(command.end(), {"--rows", "rotary", "--answer-lr", "0.0005", "--answer-batch", "8"});
  ASSERT_EQ(run_program(command).code, 0);
  const std::string reading = read_text(folder / "a/rotary/reading/config.json"),
                    answers = read_text(folder / "a/rotary/answers-4/config.json");
  for (const char* part :
       {"\"ask\": 0.0", "\"names\": 0.0", "\"answers\": 0.0", "\"questions\": 0.0", "\"span-weight\": 1.0"}) {
    EXPECT_NE(reading.find(part), std::string::npos) << part << reading;
  }
  EXPECT_NE(answers.find("\"lr\": 0.0005"), std::string::npos) << answers;
  EXPECT_NE(answers.find("\"batch\": 8"), std::string::npos) << answers;
  EXPECT_NE(read_text(folder / "a/study.json").find("course"), std::string::npos);
}

TEST(StudyCommand, ReadingAsQuestionsIsARecipeOfItsOwn) {
  const TempFolder folder;
  std::vector<std::string> command = study(folder / "a");
  command.insert(command.end(), {"--recipe", "questions", "--rows", "rotary"});
  const ProgramRun run = run_program(command);
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("text open before it"), std::string::npos) << run.out;
  EXPECT_NE(read_text(folder / "a/rotary/reading/config.json").find("\"ask\": 0.9"), std::string::npos);
  EXPECT_NE(read_text(folder / "a/report.html").find("took the second"), std::string::npos);
  expect_refused({"study", "--resume", folder / "a", "--recipe", "course"}, 2, "cannot change");
}

TEST(StudyCommand, AStudyOfVersion01GoesOnAsItBegan) {
  const TempFolder folder;
  std::vector<std::string> command = study(folder / "a");
  command.insert(command.end(), {"--recipe", "questions", "--rows", "vanilla", "--epochs", "2", "--moments", "1"});
  ASSERT_EQ(run_program(command).code, 0);
  // As that version left it: no recipe, another name of the row.
  std::filesystem::rename(folder / "a/vanilla", folder / "a/pretrained");
  const auto replace = [&](const std::string& file, const std::string& what, const std::string& by) {
    std::string text = read_text(folder / file);
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
      text.replace(at, what.size(), by);
    write_file_atomic(folder / file, text);
  };
  replace("a/results.json", "vanilla", "pretrained");
  replace("a/study.json", "\"--recipe\",\n    \"questions\",\n", "");
  replace("a/study.json", "\"vanilla\"", "\"none\"");
  const ProgramRun more =
      run_program({"study", "--resume", folder / "a", "--rows", "vanilla", "--epochs", "4", "--json"});
  ASSERT_EQ(more.code, 0) << more.err;
  EXPECT_NE(more.out.find("\"recipe\":\"questions\""), std::string::npos) << more.out;
  EXPECT_NE(more.out.find("pretrained/answers-4"), std::string::npos) << more.out;
  EXPECT_NE(more.out.find("pretrained/answers-2"), std::string::npos) << more.out;
  EXPECT_FALSE(std::filesystem::exists(folder / "a/vanilla"));
}

TEST(StudyCommand, RefusesWithOneLine) {
  const TempFolder folder;
  expect_refused({"study"}, 2, "give a study");
  expect_refused({"study", "reverse"}, 2, "available: knowledge");
  expect_refused({"study", "knowledge", "--rows", "cubic"}, 2, "unknown row 'cubic'; available: none, vanilla");
  expect_refused({"study", "knowledge", "--recipe", "soup"}, 2, "course, questions");
  expect_refused({"study", "--resume", folder.path()}, 1, "no study in");
  expect_refused({"study", "knowledge", "--data", folder.path(), "--out", folder / "x"}, 1, "no wiki.txt in");
}

TEST(KnowledgeCommands, StagesEvalPredictAndBaseline) {
  const TempFolder folder;
  const ProgramRun read =
      run_program({"train",       "knowledge", "--people",  "20", "--places", "3",          "--held",   "2",
                   "--width",     "16",        "--layers",  "1",  "--heads",  "2",          "--epochs", "1",
                   "--positions", "rotary",    "--threads", "1",  "--out",    folder / "r1"});
  ASSERT_EQ(read.code, 0) << read.err;
  // Sizes and data come from the run it starts from.
  const ProgramRun answers = run_program({"train", "knowledge", "--stage", "finetune", "--from", folder / "r1",
                                          "--epochs", "1", "--threads", "1", "--out", folder / "r2"});
  ASSERT_EQ(answers.code, 0) << answers.err;
  EXPECT_NE(read_text(folder / "r2/config.json").find("\"positions\": \"rotary\""), std::string::npos);
  const ProgramRun asked = run_program({"predict", folder / "r2"}, "Where was Bal Dar born?\nBal Dar\n");
  ASSERT_EQ(asked.code, 0) << asked.err;
  const size_t line = asked.out.find('\n');
  EXPECT_EQ(asked.out.substr(0, line), asked.out.substr(line + 1, line)) << asked.out;
  write_file_atomic(folder / "dev.tsv", std::string_view("Where was A born?\tLondon\nWhere was B born?\tRom\n"));
  const ProgramRun baseline = run_program({"eval", "--baseline", "London", "--data", folder / "dev.tsv"});
  EXPECT_NE(baseline.out.find("50%"), std::string::npos) << baseline.out;
  write_file_atomic(folder / "odd.tsv", std::string_view("Where was Ł born?\tRom\n"));
  expect_refused({"eval", folder / "r2", "--data", folder / "odd.tsv"}, 2, "'Ł' (U+0141)");
  EXPECT_EQ(run_program({"eval", folder / "r2", "--data", folder / "odd.tsv", "--replace-missing"}).code, 0);
  write_file_atomic(folder / "bad.tsv", std::string_view("Where was A born? London\n"));
  expect_refused({"eval", folder / "r2", "--data", folder / "bad.tsv"}, 1, "bad.tsv:1: no tab");
  expect_refused({"eval"}, 2, "give a run's folder to evaluate");
  expect_refused({"train", "reverse", "--from", folder / "r1", "--out", folder / "r3"}, 2,
                 "of task 'knowledge', not 'reverse'");
  expect_refused({"train", "knowledge", "--from", folder / "r1", "--width", "24", "--out", folder / "r3"}, 1,
                 "cannot start from");
  expect_refused({"predict", folder / "r2", "--top-k", "3", "x"}, 2, "does not draw its answers");
}

TEST(TextCommands, SampleWithASeed) {
  const TempFolder folder;
  ASSERT_EQ(run_program({"train", "text", "--generated-size", "100", "--width", "16", "--layers", "1", "--heads", "2",
                         "--epochs", "1", "--threads", "1", "--out", folder / "t"})
                .code,
            0);
  const auto drawn = [&](const char* seed) {
    return run_program({"predict", folder / "t", "The", "--temperature", "0.9", "--top-k", "20", "--top-p", "0.95",
                        "--seed", seed, "--max-length", "30"})
        .out;
  };
  EXPECT_EQ(drawn("5"), drawn("5"));
  EXPECT_NE(drawn("5"), drawn("6"));
}

}  // namespace
}  // namespace qkv
