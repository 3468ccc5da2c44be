// Translation as a user does it: train from files with odd lines, evaluate, translate, align, draw a page of maps.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/run_program.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;
using testing::expect_refused;
using testing::ProgramRun;
using testing::run_program;
using testing::TempFolder;
using Json = nlohmann::json;

const std::vector<std::string> kSmall{
    "train",    "translate", "--model",   "transformer", "--generated-size", "300", "--width",      "16",
    "--inner",  "16",        "--heads",   "2",           "--layers",         "2",   "--vocabulary", "150",
    "--epochs", "1",         "--average", "0",           "--threads",        "1"};

std::vector<std::string> with(std::vector<std::string> more) {
  std::vector<std::string> all = kSmall;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

int64_t lines_of(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

class Translator : public testing::TrainedRun<Translator> {
 public:
  static std::vector<std::string> command(const std::string& run) { return with({"--out", run, "--json"}); }
};

TEST_F(Translator, JsonHasLossPerTokenAndPerWordAndBleu) {
  ASSERT_EQ(result_->code, 0) << result_->err;
  const Json j = Json::parse(result_->out);
  EXPECT_EQ(j.at("attention"), "multi-head");
  EXPECT_GT(j.at("loss_per_word").get<double>(), j.at("loss").get<double>());
  EXPECT_GE(j.at("bleu").get<double>(), 0);
}

TEST_F(Translator, LinesComeOutInOrderWithScoresAndAlignments) {
  const std::string input = "der Hund schläft .\n\ndie Frau sieht , dass der Hund schläft .\n";
  const ProgramRun plain = run_program({"predict", run()}, input);
  ASSERT_EQ(plain.code, 0) << plain.err;
  EXPECT_EQ(lines_of(plain.out), 3);
  EXPECT_NE(plain.out.find("\n\n"), std::string::npos);  // the empty line stays empty
  const ProgramRun rich = run_program(
      {"predict", run(), "--beam", "3", "--n-best", "2", "--scores", "--align", "--max-length", "9"}, input);
  ASSERT_EQ(rich.code, 0) << rich.err;
  EXPECT_EQ(lines_of(rich.out), 5);  // two of each sentence, one of nothing
  EXPECT_EQ(rich.out[0], '-');
  EXPECT_EQ(std::count(rich.out.begin(), rich.out.end(), '\t'), 10);
}

TEST_F(Translator, EvaluatesTwoFilesWithTheSignature) {
  const std::string de = *folder_ / "my.de", en = *folder_ / "my.en";
  write_file_atomic(de, std::string_view("der Hund schläft .\nder Mann liest .\n"));
  write_file_atomic(en, std::string_view("the dog sleeps .\nthe man reads .\n"));
  const ProgramRun e = run_program({"eval", run(), "--data", de + "," + en, "--beam", "2", "--json"});
  ASSERT_EQ(e.code, 0) << e.err;
  const Json j = Json::parse(e.out);
  EXPECT_GE(j.at("bleu").get<double>(), 0);
  EXPECT_NE(j.at("notes").at(1).get<std::string>().find("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp"),
            std::string::npos);
  EXPECT_NE(j.at("notes").at(1).get<std::string>().find("beam 2"), std::string::npos);
  expect_refused({"eval", run(), "--data", de + "," + (*folder_ / "none.en")}, 1, "none.en");
  expect_refused({"eval", run(), "--beam", "0"}, 2, "--beam");
}

TEST_F(Translator, IsListedWithItsBleuAndWhatItsModelHas) {
  const TempFolder root;
  fs::copy(run(), root / "a", fs::copy_options::recursive);
  fs::copy(run(), root / "b", fs::copy_options::recursive);
  std::string config = read_text(root / "b/config.json");
  const size_t at = config.find("\"transformer\"");
  ASSERT_NE(at, std::string::npos);
  write_file_atomic(root / "b/config.json", std::string_view(config.replace(at, 13, "\"rnn\"")));
  const std::string list = run_program({"runs", "--root", root.path()}).out;
  EXPECT_NE(list.find("transformer, multi-head, sinusoidal  BLEU "), std::string::npos) << list;
  EXPECT_NE(list.find("rnn, multi-head   "), std::string::npos) << list;  // a recurrent model has no positions
}

TEST_F(Translator, APageOfEightMapsSaysWhyEachWasChosen) {
  const std::string page = *folder_ / "maps.html";
  const ProgramRun m = run_program({"map", run(), "--examples", "8", "--out", page});
  ASSERT_EQ(m.code, 0) << m.err;
  const std::string html = read_text(page);
  size_t pictures = 0;
  for (size_t at = 0; (at = html.find("<svg", at)) != std::string::npos; ++at) ++pictures;
  EXPECT_EQ(pictures, 8u);
  for (const char* why : {"nearly in order", "most out of order", "the longest", "the worst translation"}) {
    EXPECT_NE(html.find(why), std::string::npos) << why;
  }
}

TEST(TranslatorFiles, OddLinesAreNamedAndUnequalFilesRefused) {
  const TempFolder folder;
  const auto write = [&](const char* name, const std::string& text) {
    write_file_atomic(folder / name, std::string_view(text));
  };
  std::string de, en;
  for (int i = 0; i < 40; ++i) {
    de += "ein Hund " + std::to_string(i % 7) + "\n";
    en += "a dog " + std::to_string(i % 7) + "\n";
  }
  write("train.de", de + "\n");
  write("train.en", en + "nobody knows\n");
  write("val.de", "ein Hund 3\n");
  write("val.en", "a dog 3\n");
  const ProgramRun run = run_program(with({"--data", folder.path(), "--vocabulary", "40", "--out", folder / "run"}));
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.err.find("skipped 1 line: 1 empty"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("train.de:41 empty"), std::string::npos) << run.err;
  write("train.en", en);
  expect_refused(with({"--data", folder.path(), "--out", folder / "no"}), 1, "has 41 lines");
  expect_refused(with({"--train-src", folder / "train.de", "--out", folder / "no"}), 2, "--train-tgt");
  expect_refused(with({"--attention", "none", "--out", folder / "no"}), 2, "none");
  EXPECT_FALSE(fs::exists(folder / "no"));
}

}  // namespace
}  // namespace qkv
