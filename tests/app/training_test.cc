// train, eval, predict, map and compare as a user runs them: results, JSON, wrong usage, damage.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "app/run_program.h"
#include "qkv/io/safetensors.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;
using testing::expect_refused;
using testing::ProgramRun;
using testing::run_program;
using testing::TempFolder;
using Json = nlohmann::json;

std::vector<std::string> small_run(const std::string& command, std::vector<std::string> more) {
  std::vector<std::string> all{command,        "reverse", "--train-size", "300", "--validation-size", "40",
                               "--max-length", "6",       "--hidden",     "16",  "--embedding",       "8",
                               "--epochs",     "2",       "--batch",      "32"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// One trained run, shared by the tests that only look at it.
class Trained : public testing::TrainedRun<Trained> {
 public:
  static std::vector<std::string> command(const std::string& run) {
    return small_run("train", {"--out", run, "--json"});
  }
};

TEST_F(Trained, JsonSaysEverything) {
  ASSERT_EQ(result_->code, 0) << result_->err;
  EXPECT_EQ(std::count(result_->out.begin(), result_->out.end(), '\n'), 1);
  const Json j = Json::parse(result_->out);
  EXPECT_EQ(j.at("run"), run());
  EXPECT_EQ(j.at("attention"), "dot");
  EXPECT_EQ(j.at("epochs"), 2);
  EXPECT_GE(j.at("exact_match").get<double>(), 0);
  EXPECT_LE(j.at("exact_match").get<double>(), 1);
  EXPECT_GT(j.at("loss").get<double>(), 0);
  EXPECT_GT(j.at("seconds").get<double>(), 0);
  EXPECT_TRUE(j.at("exact_match_by_length").contains("6"));
  EXPECT_TRUE(j.at("exact_match_by_length").contains("12"));
  EXPECT_FALSE(j.at("exact_match_by_length").contains("13"));
  for (const char* file : {"config.json", "metrics.jsonl", "result.json", "report.html"}) {
    EXPECT_TRUE(fs::exists(run() + "/" + file)) << file;
  }
  EXPECT_EQ(read_text(run() + "/result.json"), result_->out);
}

TEST_F(Trained, TheReportStandsAlone) {
  const std::string html = read_text(run() + "/report.html");
  for (const char* part : {"Learning", "Where it looks", "Errors", "Configuration", "<svg", "qkv train reverse"}) {
    EXPECT_NE(html.find(part), std::string::npos) << part;
  }
  for (const char* part : {"http://", "https://", "<script", "src=\"", "url("}) {
    // SVG needs its namespaces, which are names and not addresses to load.
    std::string rest = html;
    for (const std::string ns : {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}) {
      for (size_t at; (at = rest.find(ns)) != std::string::npos;) rest.erase(at, ns.size());
    }
    if (std::string(part) == "url(") {
      for (size_t at; (at = rest.find("url(#")) != std::string::npos;) rest.erase(at, 5);
    }
    EXPECT_EQ(rest.find(part), std::string::npos) << part;
  }
}

TEST_F(Trained, EvalGivesTheSameFigures) {
  const ProgramRun eval = run_program({"eval", run(), "--json"});
  ASSERT_EQ(eval.code, 0) << eval.err;
  const Json j = Json::parse(eval.out), trained = Json::parse(result_->out);
  EXPECT_EQ(j.at("exact_match"), trained.at("exact_match"));
  EXPECT_EQ(j.at("exact_match_by_length"), trained.at("exact_match_by_length"));
  EXPECT_EQ(j.at("loss"), trained.at("loss"));
  const ProgramRun table = run_program({"eval", run()});
  EXPECT_NE(table.out.find("exact match"), std::string::npos);
  EXPECT_NE(table.out.find("(not trained on)"), std::string::npos);

  write_file_atomic(*folder_ / "own.txt", std::string_view("abcd\n\ndd\r\n"));
  const ProgramRun own = run_program({"eval", run(), "--data", *folder_ / "own.txt", "--json"});
  ASSERT_EQ(own.code, 0) << own.err;
  EXPECT_EQ(Json::parse(own.out).at("exact_match_by_length").size(), 2u);
  write_file_atomic(*folder_ / "odd.txt", std::string_view("abcd\nab7\n"));
  expect_refused({"eval", run(), "--data", *folder_ / "odd.txt"}, 1, "odd.txt:2: letter 3 of the input");
  expect_refused({"eval", run(), "--data", *folder_ / "none.txt"}, 1, "none.txt");
}

TEST_F(Trained, PredictFromArgumentsAndFromLines) {
  const ProgramRun words = run_program({"predict", run(), "abcd", "dd"});
  EXPECT_EQ(words.code, 0) << words.err;
  EXPECT_EQ(std::count(words.out.begin(), words.out.end(), '\n'), 2);
  EXPECT_EQ(run_program({"predict", run()}, "abcd\ndd\n").out, words.out);
  EXPECT_EQ(run_program({"predict", run()}, "abcd\r\ndd").out, words.out);
  EXPECT_EQ(run_program({"predict", run()}, "").out, "");
  const ProgramRun beam = run_program({"predict", run(), "abcd", "--beam", "3", "--n-best", "3", "--scores"});
  EXPECT_EQ(std::count(beam.out.begin(), beam.out.end(), '\n'), 3);
  EXPECT_EQ(std::count(beam.out.begin(), beam.out.end(), '\t'), 3);
  expect_refused({"predict", run(), "abxd"}, 2, "letter 3 of the input, 'x' (U+0078), is not in the alphabet 'abcd'");
  expect_refused({"predict", run(), ""}, 2, "the input is empty");
  expect_refused({"predict", run(), "ab", "--beam", "0"}, 2, "--beam");
  expect_refused({"predict", run(), "ab", "--beam", "1", "--n-best", "2"}, 2, "--n-best");
  const ProgramRun odd = run_program({"predict", run()}, "abcd\n\ndd\n");
  EXPECT_EQ(odd.code, 1);
  EXPECT_EQ(odd.err, "qkv: line 2: the input is empty; expected letters of the alphabet\n");
  EXPECT_EQ(std::count(odd.out.begin(), odd.out.end(), '\n'), 1);
}

TEST_F(Trained, MapsInEveryFormat) {
  const ProgramRun terminal = run_program({"map", run(), "--input", "abcd"});
  EXPECT_EQ(terminal.code, 0) << terminal.err;
  EXPECT_EQ(terminal.out.rfind("abcd → ", 0), 0u);
  for (const auto& [file, magic] : std::vector<std::pair<std::string, std::string>>{
           {"m.png", "\x89PNG"}, {"m.svg", "<?xml"}, {"m.html", "<!DOCTYPE html>"}, {"m.csv", ""}}) {
    const ProgramRun saved = run_program({"map", run(), "--input", "abcd", "--out", *folder_ / file});
    EXPECT_EQ(saved.code, 0) << saved.err;
    EXPECT_EQ(read_text(*folder_ / file).rfind(magic, 0), 0u) << file;
  }
  // Each row of the table of weights sums to 1.
  const std::string csv = read_text(*folder_ / "m.csv");
  const size_t second = csv.find('\n') + 1;
  const std::string row = csv.substr(second, csv.find('\n', second) - second);
  double sum = 0;
  for (size_t at = row.find(','); at != std::string::npos; at = row.find(',', at + 1))
    sum += std::stod(row.substr(at + 1));
  EXPECT_NEAR(sum, 1, 1e-3);
  expect_refused({"map", run(), "--input", "abcd", "--out", *folder_ / "m.pdf"}, 2, ".png, .svg, .html or .csv");
  expect_refused({"map", run(), "--input", "abcd", "--head", "4"}, 2, "--head 4: there is 1 head, number 0");
  expect_refused({"map", run(), "--input", ""}, 2, "the input is empty");
}

TEST_F(Trained, ResumingWhatIsFinished) {
  const ProgramRun again = run_program({"train", "--resume", run(), "--json"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(Json::parse(again.out).at("exact_match"), Json::parse(result_->out).at("exact_match"));
  EXPECT_EQ(Json::parse(again.out).at("stopped"), "epochs");
  expect_refused({"train", "translate", "--resume", run()}, 2, "is of task 'reverse', not 'translate'");
  expect_refused({"train", "--resume", run(), "--hidden", "32"}, 2, "--hidden cannot change when a run is resumed");
  expect_refused({"train", "--resume", run(), "--out", run()}, 2, "cannot be combined");
  expect_refused({"train", "reverse", "--out", run()}, 1, "continue it with 'qkv train --resume " + run());
  expect_refused({"eval", *folder_ / "nowhere"}, 1, "no run in");
  expect_refused({"eval", run(), "--weights", "worst"}, 2, "available: best, last, ");
}

TEST_F(Trained, ForeignAndDamagedCheckpoints) {
  const TempFolder copy;
  const std::string path = copy / "run";
  fs::copy(run(), path, fs::copy_options::recursive);
  const std::string steps = path + "/checkpoints/";
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(steps)) names.push_back(entry.path().string());
  std::sort(names.begin(), names.end());
  const std::string model = names.back() + "/model.safetensors";
  fs::resize_file(model, fs::file_size(model) / 2);
  expect_refused({"train", "--resume", path, "--epochs", "3"}, 1, "model.safetensors");
  expect_refused({"eval", path, "--weights", "last"}, 1, "model.safetensors");
  const std::vector<float> one{1.0f};
  save_safetensors(model, {safetensor_view("foreign", {1}, one)});
  expect_refused({"eval", path, "--weights", "last"}, 1, "the file belongs to another model");
  fs::remove_all(names.back());
  EXPECT_EQ(run_program({"train", "--resume", path, "--json"}).code, 0);
}

TEST(Training, WrongUsage) {
  expect_refused({"train"}, 2, "give a task to train: reverse");
  expect_refused({"train", "revrse"}, 2, "unknown task 'revrse' (did you mean 'reverse'?); available: reverse");
  expect_refused({"train", "reverse", "--attention", "psychic"}, 2, "is not one of: none, mean, dot, scaled-dot");
  expect_refused({"train", "reverse", "--hidden", "0"}, 2, "--hidden: '0' is not a whole number between 1 and");
  expect_refused({"train", "reverse", "--hidden", "-3"}, 2, "--hidden");
  expect_refused({"train", "reverse", "--batch", "0"}, 2, "--batch");
  expect_refused({"train", "reverse", "--epochs", "many"}, 2, "--epochs: 'many' is not a whole number");
  expect_refused({"train", "reverse", "--max-length", "0"}, 2, "--max-length");
  expect_refused({"train", "reverse", "--train-size", "-1"}, 2, "--train-size");
  expect_refused({"train", "reverse", "--lr", "nan"}, 2, "--lr");
  expect_refused({"train", "reverse", "--lr", "-1"}, 2, "--lr");
  expect_refused({"train", "reverse", "--alphabet", ""}, 2, "--alphabet");
  expect_refused({"train", "reverse", "--alphabet", "aab"}, 2, "is given twice");
  expect_refused({"train", "reverse", "--alphabet", "a", "--max-length", "5"}, 2, "can train (10000 wanted)");
  expect_refused({"train", "reverse", "--min-length", "9", "--max-length", "3"}, 2, "is above --max-length");
  expect_refused({"train", "reverse", "--wings", "2"}, 2, "--wings");
  expect_refused({"train", "reverse", "--attention", "multi-head", "--heads", "7"}, 2, "heads");
  expect_refused({"train", "--resume", "/nonexistent/run"}, 1, "no run in /nonexistent/run");
  expect_refused({"compare"}, 2, "give a task");
  expect_refused({"compare", "reverse", "--attention", "dot,psychic"}, 2, "is not one of: none, mean");
  expect_refused({"compare", "reverse", "--attention", "dot,dot"}, 2, "is given twice");
  expect_refused({"compare", "--resume", "/nonexistent"}, 1, "no comparison in /nonexistent");
  expect_refused({"train", "reverse", "--out", "/proc/nowhere/run"}, 1, "/proc/nowhere");
}

TEST(Training, WhatIsRefusedLeavesNoFolder) {
  const TempFolder folder;
  const std::string run = folder / "run";
  const std::vector<std::string> too_few{"--alphabet", "a", "--max-length", "5", "--out", run};
  for (std::vector<std::string> command : {std::vector<std::string>{"train", "reverse"}, {"compare", "reverse"}}) {
    command.insert(command.end(), too_few.begin(), too_few.end());
    expect_refused(command, 2, "can train (10000 wanted)");
    EXPECT_EQ(folder.entries(), 0) << command[0];
  }
  expect_refused({"train", "translate", "--data", folder / "none", "--out", run}, 1, "none");
  expect_refused({"compare", "translate", "--data", folder / "none", "--out", run}, 1, "none");
  expect_refused({"study", "knowledge", "--data", folder / "none", "--out", run}, 1, "none");
  expect_refused({"train", "reverse", "--out", folder / "r\xff"}, 2, "the name is not UTF-8");
  expect_refused({"compare", "reverse", "--out", folder / "r\xff"}, 2, "the name is not UTF-8");
  EXPECT_EQ(folder.entries(), 0);
}

TEST(Training, TwoTrainingStringsOfATinyAlphabet) {
  const TempFolder folder;
  const ProgramRun run =
      run_program({"train", "reverse", "--alphabet", "ab", "--min-length", "2", "--max-length", "2", "--train-size",
                   "2", "--validation-size", "1", "--epochs", "1", "--hidden", "8", "--out", folder / "run"});
  EXPECT_TRUE(run.code == 0 || run.code == 2) << run.err;
}

TEST(Training, OfTwoInOneFolderOneWins) {
  const TempFolder folder;
  const std::string run = folder / "run";
  std::vector<ProgramRun> ends(2);
  std::thread other([&] { ends[1] = run_program(small_run("train", {"--out", run})); });
  ends[0] = run_program(small_run("train", {"--out", run}));
  other.join();
  std::sort(ends.begin(), ends.end(), [](const auto& a, const auto& b) { return a.code < b.code; });
  EXPECT_EQ(ends[0].code, 0) << ends[0].err;
  EXPECT_EQ(ends[1].code, 1);
  EXPECT_NE(ends[1].err.find("cannot start a run in " + run), std::string::npos) << ends[1].err;
  EXPECT_EQ(folder.entries(), 1);
  EXPECT_EQ(run_program({"eval", run, "--json"}).code, 0);
}

TEST(Training, EveryCommandTeaches) {
  for (const char* command : {"train", "compare", "eval", "predict", "map"}) {
    const ProgramRun help = run_program({command, "--help"});
    EXPECT_EQ(help.code, 0);
    EXPECT_NE(help.out.find("Examples:\n  qkv " + std::string(command)), std::string::npos) << help.out;
  }
  EXPECT_NE(run_program({"train", "reverse", "--help"}).out.find("--attention"), std::string::npos);
}

TEST(Training, NotANumberEndsWithOneLineAndTheLastCheckpoint) {
  const TempFolder folder;  // each update multiplies the weights by 1 - lr·decay
  const ProgramRun run =
      run_program(small_run("train", {"--out", folder / "run", "--optimizer", "sgd", "--momentum", "0", "--lr", "1000",
                                      "--weight-decay", "1000", "--checkpoint-every", "1"}));
  EXPECT_EQ(run.code, 1) << run.out << run.err;
  EXPECT_NE(run.err.find("qkv: training stopped at step "), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("the last good checkpoint is " + folder / "run/checkpoints/"), std::string::npos) << run.err;
}

TEST(Training, AFullDiskEndsWithOneLine) {
  const TempFolder folder;
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  const rlimit small{9000, old.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const ProgramRun run = run_program(small_run("train", {"--out", folder / "run"}));
  ::setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_EQ(run.code, 1) << run.err;
  EXPECT_NE(run.err.find("model.safetensors: File too large; no checkpoint could be saved yet\n"), std::string::npos)
      << run.err;
}

TEST(Training, CompareShowsAllSideBySide) {
  const TempFolder folder;
  const ProgramRun run = run_program(small_run("compare", {"--attention", "none,dot", "--out", folder / "both"}));
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("exact match"), std::string::npos);
  EXPECT_NE(run.out.find("report: " + folder / "both/report.html"), std::string::npos);
  for (const char* file : {"none/config.json", "dot/report.html", "report.html", "curves.svg", "compare.json"}) {
    EXPECT_TRUE(fs::exists(folder / "both/" + file)) << file;
  }
  const ProgramRun again = run_program({"compare", "--resume", folder / "both", "--json"});
  ASSERT_EQ(again.code, 0) << again.err;
  const Json j = Json::parse(again.out);
  ASSERT_EQ(j.at("runs").size(), 2u);
  EXPECT_EQ(j.at("runs")[1].at("attention"), "dot");
  expect_refused({"compare", "reverse", "--out", folder / "both"}, 1, "choose another --out");
  expect_refused({"map", folder / "both/none", "--input", "abcd"}, 2, "no attention to show");
}

}  // namespace
}  // namespace qkv
