// What a newcomer is told: suggestions, help by topic, ranges as people write them, and errors that name the help.
#include <gtest/gtest.h>

#include <filesystem>

#include "app/run_program.h"
#include "qkv/io/json.h"
#include "qkv/kernels/simd_target.h"

namespace qkv::testing {
namespace {

namespace fs = std::filesystem;

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Messages, ANameThatIsNearlyRightIsSuggested) {
  expect_refused({"--target", "AVX2", "lab"}, 2, "option '--target' before a command; options come after it");
  expect_refused({"tarin", "reverse"}, 2, "unknown command 'tarin' (did you mean 'train'?); available: lab, explain");
  expect_refused({"--verion"}, 2, "(did you mean '--version'?)");
  expect_refused({"help", "evla"}, 2, "(did you mean 'eval'?)");
  expect_refused({"train", "revese"}, 2, "unknown task 'revese' (did you mean 'reverse'?)");
  expect_refused({"train", "reverse", "--layrs", "3"}, 2,
                 "no option '--layrs' (did you mean '--layers'?); see 'qkv train reverse --help'");
  expect_refused({"train", "reverse", "--hidden-size=3"}, 2, "no option '--hidden-size'");
  expect_refused({"train", "reverse", "--attention", "dott"}, 2, "(did you mean 'dot'?)");
  expect_refused({"compare", "reverse", "--attention", "none,aditive"}, 2, "(did you mean 'additive'?)");
  expect_refused({"attend", "--normalizer", "softmax"}, 2, "(did you mean '--normaliser'?)");
  expect_refused({"lab", "noisy-key"}, 2, "(did you mean 'noisy-keys'?)");
  expect_refused({"bench", "gem"}, 2, "(did you mean 'gemm'?)");
  expect_refused({"study", "knowlege"}, 2, "(did you mean 'knowledge'?)");
}

TEST(Messages, WhateverANameHoldsTheMessageIsOneShortLine) {
  const std::string name = "a\nb\x1b[2J\xC2\x9B\xE2\x80\xAE\xFFü";
  expect_refused({"eval", "--baseline", "x", "--data", name}, 1, "cannot read a?b?[2J???ü: No such file");
  expect_refused({"eval", "--baseline", "x", "--data", std::string(5000, 'x')}, 1, "x: File name too long");
  const std::string err = run_program({"eval", "--baseline", "x", "--data", std::string(5000, '\xC3') + "ü"}).err;
  EXPECT_LT(err.size(), 1100u);
  EXPECT_LT(run_program({"eval", "--baseline", "x", "--data", std::string(9000, 'x')}).err.size(), 1100u);
}

TEST(Messages, WordsOfOtherProgramsAreUnderstood) {
  expect_refused({"train", "reverse", "--learning-rate", "0.1"}, 2, "(did you mean '--lr'?)");
  expect_refused({"train", "reverse", "--batch-size=3"}, 2, "(did you mean '--batch'?)");
  expect_refused({"train", "reverse", "--num_epochs", "3"}, 2, "(did you mean '--epochs'?)");
  expect_refused({"map", "x", "--checkpoint", "5"}, 2, "(did you mean '--weights'?)");
  expect_refused({"reverse"}, 2, "'reverse' is a task: train a model of it with 'qkv train reverse'");
  expect_refused({"runs", "delete", "x"}, 2, "'delete' is not one of: list, rm, rename, add");
  EXPECT_EQ(run_program({"version"}).out, run_program({"--version"}).out);
  for (const char* version : {"-V", "-v"}) EXPECT_EQ(run_program({version}).code, 0);
}

TEST(Messages, WrongUsageNamesTheHelpThatListsTheOption) {
  expect_refused({"train", "--resume"}, 2, "--resume needs a value: --resume RUN; see 'qkv train --help'");
  expect_refused({"eval"}, 2, "see 'qkv eval --help'");
  expect_refused({"compare"}, 2, "see 'qkv compare --help'");
  expect_refused({"compare", "reverse", "--attention", ""}, 2, "--attention names no mechanism");
  expect_refused({"study"}, 2, "see 'qkv study --help'");
  expect_refused({"site"}, 2, "see 'qkv site --help'");

  expect_refused({"train", "reverse", "--hidden", "70000"}, 2,
                 "--hidden: '70000' is not a whole number between 1 and 65,536; see 'qkv train reverse --help'");
  expect_refused({"train", "reverse", "--gpu"}, 2, "no option '--gpu': qkv runs on the CPU");
  expect_refused({"train", "reverse", "--device=cuda"}, 2, "no option '--device': qkv runs on the CPU");
  expect_refused({"train", "--gpu"}, 2, "qkv runs on the CPU");
  expect_refused({"--gpu"}, 2, "qkv runs on the CPU");
  expect_refused({"train", "--layers", "3"}, 2, "give a task to train: reverse");
  expect_refused({"train", "reverse", "--attention", "none,dot"}, 2, "'qkv compare reverse --attention none,dot'");
  expect_refused({"train", "reverse", "--out"}, 2, "--out needs a value: --out DIR; see 'qkv train reverse --help'");
  expect_refused({"map"}, 2, "RUN is required; see 'qkv map --help'");
  expect_refused({"map", "x", "--head", "2000"}, 2, "--head: '2000' is not a whole number between 0 and 1000");
  expect_refused({"predict", "x", "--top-p", "2"}, 2, "--top-p: '2' is not a number between 0.000001 and 1");
  expect_refused({"serve", "--port", "70000"}, 2, "--port: '70000' is not a whole number between 0 and 65,535");
  expect_refused({"compare", "reverse", "dot"}, 2, "'dot' is not expected here");
  expect_refused({"lab", "copy", "--threads", "0"}, 2, "--threads: '0' is not a whole number between 1 and 1024");
}

TEST(Messages, AttendSaysHowToMakeAnArrayOfAText) {
  const char* how = "np.save('a.npy', np.loadtxt('a.csv', delimiter=',')";
  expect_refused({"attend", "--q", "a.csv", "--k", "k.npy", "--v", "v.npy"}, 2, how);
  expect_refused({"attend", "--q", "a.csv"}, 2, how);
}

TEST(Messages, AServerWithoutARunThatWasNamedDoesNotStart) {
  expect_refused({"serve", "no/such/run", "--port", "0"}, 1, "no run in no/such/run");
}

TEST(Help, IsThereForEveryCommandAndTask) {
  const std::string all = run_program({"--help"}).out;
  for (const char* group : {"\nlearn\n", "\ntrain\n", "\nlook\n", "\nuse\n", "\nmeasure\n"}) {
    EXPECT_TRUE(says(all, group)) << group;
  }
  EXPECT_EQ(run_program({"help"}).out, all);
  EXPECT_EQ(run_program({"help", "train"}).out, run_program({"train", "--help"}).out);
  EXPECT_EQ(run_program({"help", "lab", "copy"}).out, run_program({"lab", "copy", "--help"}).out);
  for (const char* task : {"reverse", "translate", "images", "knowledge", "text"}) {
    const ProgramRun run = run_program({"help", "train", task});
    EXPECT_EQ(run.code, 0) << run.err;
    size_t at = 0;
    for (const char* section : {"\nData:\n", "\nModel:\n", "\nTraining:\n", "\nOutput:\n", "\nExamples:\n"}) {
      const size_t found = run.out.find(section);
      EXPECT_TRUE(found != std::string::npos && found > at) << task << section;
      at = found;
    }
    EXPECT_TRUE(says(run.out, "\n  qkv train " + std::string(task))) << run.out;
    for (size_t begin = 0; begin < run.out.find("\nExamples:"); begin = run.out.find('\n', begin) + 1) {
      EXPECT_LE(run.out.find('\n', begin) - begin, 90u)
          << run.out.substr(begin, 120);  // 80 columns; some take two bytes
    }
  }
}

TEST(Target, IsRestrictedForEveryCommandAndNamed) {
  const std::vector<std::string> targets = kernels::simd_targets();
  const std::string last = targets.back();
  for (const std::string& target : targets) {
    EXPECT_EQ(run_program({"explain", "--target", target}).code, 0) << target;
  }
  expect_refused({"lab", "copy", "--target", "AVX9"}, 2, "--target: 'AVX9' is not one that this processor has: ");
  const TempFolder folder;
  const ProgramRun run = run_program({"train", "reverse", "--epochs", "1", "--train-size", "64", "--validation-size",
                                      "8", "--target", last, "--out", folder / "run"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(says(run.out, last)) << run.out;
  EXPECT_EQ(read_json(folder / "run/config.json", "")["simd"], last);
  EXPECT_TRUE(says(read_text(folder / "run/report.html"), last));
}

TEST(Compare, TakesWhatTheTaskHasUnlessAsked) {
  EXPECT_TRUE(says(run_program({"compare", "reverse", "--help"}).out, "[none,dot]"));
  const TempFolder folder;
  const ProgramRun run = run_program({"compare", "text", "--generated-size", "100", "--epochs", "1", "--layers", "1",
                                      "--heads", "2", "--width", "16", "--block", "16", "--out", folder / "both"});
  EXPECT_EQ(run.code, 0) << run.err;  // where a model without attention would know nothing at all
  EXPECT_TRUE(fs::exists(folder / "both/mean/result.json"));
  EXPECT_TRUE(fs::exists(folder / "both/multi-head/result.json"));
}

class Runs : public TrainedRun<Runs> {
 public:
  static std::vector<std::string> command(const std::string& run) {
    return {"compare",           "reverse", "--attention", "none,dot", "--epochs", "1", "--train-size", "64",
            "--validation-size", "8",       "--hidden",    "8",        "--out",    run, "--seed",       "3"};
  }
};

TEST_F(Runs, OfAComparisonAreFoundByEveryCommand) {
  ASSERT_EQ(result_->code, 0) << result_->err;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"eval", run()}, {"map", run(), "abcd"}, {"predict", run(), "abcd"}}) {
    expect_refused(words, 1, run() + " is a comparison; its runs: dot, none: give one, as in " + run() + "/none");
  }
  expect_refused({"train", "--resume", run()}, 1, "which continues with 'qkv compare --resume " + run() + "'");
  expect_refused({"compare", "--resume", run() + "/dot"}, 1, "'qkv train --resume " + run() + "/dot'");
  EXPECT_EQ(run_program({"eval", run() + "/dot"}).code, 0);
  expect_refused({"eval", run() + "/dott"}, 1, "(did you mean '" + run() + "/dot'?)");
  expect_refused({"map", run() + "/dot", "abcd", "--head", "3"}, 2, "--head 3: there is 1 head, number 0");
  expect_refused({"map", run() + "/dot", "abcd", "--site", "cros"}, 2, "(did you mean 'cross'?)");
}

TEST_F(Runs, AreListedRemovedAndRenamed) {
  const std::string root = folder_->path();
  const ProgramRun list = run_program({"runs", "--root", root});
  EXPECT_EQ(list.code, 0) << list.err;
  EXPECT_TRUE(says(list.out, "comparison")) << list.out;
  EXPECT_TRUE(says(list.out, "exact match")) << list.out;
  const Json json = parse_json(run_program({"runs", "--root", root, "--json"}).out, {});
  ASSERT_EQ(json["runs"].size(), 2u);
  EXPECT_EQ(json["runs"][0]["id"], "run/dot");
  EXPECT_EQ(json["runs"][0]["group"], "run");
  EXPECT_EQ(json["runs"][0]["task"], "reverse");
  EXPECT_TRUE(json["runs"][0]["finished"].get<bool>());
  EXPECT_GT(json["runs"][0]["bytes"], 1000);
  expect_refused({"runs", "rm", root}, 1, "is no run, comparison or study");
  expect_refused({"runs", "rename", run() + "/dot", "x"}, 1, "is part of " + run());
  fs::copy(run() + "/dot", root + "/copy", fs::copy_options::recursive);
  EXPECT_EQ(run_program({"runs", "rename", root + "/copy", "other"}).code, 0);
  EXPECT_EQ(run_program({"runs", "rm", root + "/other"}).code, 0);
  EXPECT_FALSE(fs::exists(root + "/other"));
}

TEST_F(Runs, SayInTwoSentencesWhatTheyMean) {
  EXPECT_FALSE(says(result_->out, "epoch  1/1")) << result_->out;  // no line per epoch
  EXPECT_TRUE(says(result_->out, "The runs differ in their attention alone")) << result_->out;
  EXPECT_TRUE(says(result_->out, "The map: each row is a token that 'dot' wrote")) << result_->out;
  EXPECT_TRUE(says(result_->out, "1 epoch in ")) << result_->out;
  EXPECT_TRUE(says(result_->out, "exact match, lengths 21 to 40")) << result_->out;
  EXPECT_TRUE(says(result_->out, "qkv serve")) << result_->out;
  expect_lines_fit(result_->out);
}

TEST(Lines, OfATrainingAreATable) {
  const TempFolder folder;
  const std::string run = folder / "run";
  const ProgramRun first = run_program({"train", "reverse", "--out", run, "--train-size", "64", "--validation-size",
                                        "8", "--epochs", "2", "--hidden", "8"});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_TRUE(says(first.out,
                   "\n         training  validation\n"
                   "  epoch      loss        loss  character accuracy  exact match\n    1/2 "))
      << first.out;
  expect_lines_fit(first.out);
  const ProgramRun again = run_program({"train", "--resume", run});
  EXPECT_TRUE(says(again.err, "this run had ended; for more epochs: qkv train --resume " + run)) << again.err;
}

TEST_F(Runs, ShowAnExampleWhereNoInputIsGiven) {
  const ProgramRun run = run_program({"map", Runs::run() + "/dot"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(says(run.out, " → ")) << run.out;
}

TEST_F(Runs, GiveTheirConfigurationToOthers) {
  const TempFolder folder;
  const auto trained = [&](std::vector<std::string> words, const std::string& name) {
    words.insert(words.end(), {"--out", folder / name});
    const ProgramRun run = run_program(words);
    EXPECT_EQ(run.code, 0) << run.err;
    return read_json(folder / (name + "/config.json"), "")["settings"];
  };
  const Json same = trained({"train", "--config", run() + "/dot"}, "same");
  EXPECT_EQ(same, read_json(run() + "/dot/config.json", "")["settings"]);
  const Json other = trained({"train", "reverse", "--config=" + run() + "/dot/config.json", "--seed", "4"}, "other");
  EXPECT_EQ(other["seed"], 4);
  EXPECT_EQ(other["hidden"], 8);
  const ProgramRun both =
      run_program({"compare", "--config", run() + "/dot", "--attention", "dot", "--out", folder / "both"});
  EXPECT_EQ(both.code, 0) << both.err;
  EXPECT_EQ(read_json(folder / "both/dot/config.json", "")["settings"]["hidden"], 8);
  expect_refused({"train", "translate", "--config", run() + "/dot"}, 2, "is of task 'reverse', not 'translate'");
  write_file_atomic(folder / "wrong.json", std::string_view(R"({"task": "reverse", "settings": {"hiden": 3}})"));
  expect_refused({"train", "--config", folder / "wrong.json"}, 2, "unknown setting 'hiden' (did you mean 'hidden'?)");
  expect_refused({"train", "--config", folder / "none.json"}, 1, "none.json");
  write_file_atomic(folder / "flat.json", std::string_view(R"({"epochs": 3})"));
  expect_refused({"train", "reverse", "--config", folder / "flat.json"}, 2, R"(it is written {"task": "reverse")");
}

}  // namespace
}  // namespace qkv::testing
