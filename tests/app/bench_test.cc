// The bench command with tiny sizes: every case runs, rows say what they must, wrong usage is refused.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "app/run_program.h"
#include "qkv/app/bench/cases.h"
#include "qkv/app/bench/growth.h"
#include "qkv/io/file.h"

namespace qkv::app {
namespace {

using qkv::testing::expect_refused;
using qkv::testing::run_program;

std::vector<nlohmann::json> rows_of(const std::string& text) {
  std::vector<nlohmann::json> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) rows.push_back(nlohmann::json::parse(line));
  return rows;
}

TEST(Bench, RunsEveryCaseAndNamesTheLimits) {
  const auto run = run_program({"bench", "--quick", "--json", "--threads", "1", "--rounds", "5"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto rows = rows_of(run.out);
  ASSERT_EQ(rows.size(), 1 + bench::case_table().size());
  EXPECT_EQ(rows[0]["case"], "limits");
  EXPECT_GT(rows[0]["gflops"].get<double>(), 0);
  std::set<std::string> names;
  for (size_t i = 1; i < rows.size(); ++i) {
    names.insert(rows[i]["case"]);
    EXPECT_EQ(rows[i]["runs"]["qkv"]["ms"].size(), 5u) << rows[i];
    EXPECT_GT(rows[i]["rate"].get<double>(), 0) << rows[i];
    EXPECT_GT(rows[i]["share_of_peak"].get<double>(), 0) << rows[i];
    const bool reads = rows[i]["case"].get<std::string>().starts_with("decode");
    EXPECT_TRUE(!reads || rows[i].value("share_of_bandwidth", 0.0) > 0) << rows[i];
  }
  EXPECT_EQ(names.size(), bench::case_table().size());
}

TEST(Bench, WritesAllRowsAndAPicture) {
  const qkv::testing::TempFolder folder;
  const auto run =
      run_program({"bench", "gemm", "--quick", "--threads", "1,2", "--rounds", "5", "--out", folder / "new"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto all = nlohmann::json::parse(read_text(folder / "new/bench.json"));
  ASSERT_EQ(all["limits"].size(), 2u);
  ASSERT_FALSE(all["rows"].empty());
  for (const auto& row : all["rows"]) {
    EXPECT_LE(row["runs"]["qkv"]["least_ms"].get<double>(), row["runs"]["qkv"]["median_ms"].get<double>()) << row;
  }
  const std::string svg = read_text(folder / "new/bench.svg");
  EXPECT_NE(svg.find("<svg"), std::string::npos);
}

TEST(Bench, ComparesWithTheBestOtherAndShowsTheRestBeside) {
  const std::vector<bench::Contestant> who = {{.name = "qkv", .run = {}, .seconds = {2, 2, 4}},
                                              {.name = "A", .run = {}, .seconds = {3, 6, 6}},
                                              {.name = "B", .run = {}, .seconds = {4, 4, 4}},
                                              {.name = "C", .run = {}, .seconds = {1, 1, 1}, .beside = true}};
  EXPECT_EQ(bench::best_other(who)->name, "B");
  EXPECT_EQ(bench::ratios(who), (std::vector<double>{1, 2, 2}));
  EXPECT_EQ(bench::least_ratio(who), 1.5);  // A's 3 by 2
  EXPECT_EQ(bench::best_other({who[0], who[3]}), nullptr);
  EXPECT_EQ(bench::least_ratio({who[0], who[3]}), 0);
}

TEST(Bench, FindsTheBuildsOfBlasOfARoot) {
  const qkv::testing::TempFolder root;
  const auto names = [&] {
    std::string all;
    for (const bench::Blas& b : bench::blas_builds({.root = root / "."})) all += b.name + ";";
    return all;
  };
  EXPECT_EQ(names(), ";");
  make_folders(root / "usr/lib/any/blis-openmp");
  write_file_atomic(root / "usr/lib/any/libmkl_rt.so", std::string_view("not read"));
  EXPECT_EQ(names(), "BLIS;MKL;");
  const bench::Blas mkl = bench::blas_builds({.root = root / "."})[1];
  EXPECT_EQ(mkl.environment[0], "LD_PRELOAD=libgomp.so.1:/usr/lib/any/libmkl_rt.so");
  const auto words = bench::python_command({.root = root / ".", .threads = 2, .avx2 = true}, mkl, "script");
  EXPECT_EQ(words[0], "chroot");
  for (const char* word : {"MKL_THREADING_LAYER=GNU", "MKL_NUM_THREADS=2", "MKL_ENABLE_INSTRUCTIONS=AVX2"}) {
    EXPECT_NE(std::find(words.begin(), words.end(), word), words.end()) << word;
  }
}

TEST(Bench, RunsOneCaseForPeople) {
  const auto run = run_program({"bench", "decode", "--only", "gpt", "--quick", "--threads", "2", "--rounds", "5"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("FMA peak"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("decode gpt, 2 threads: "), std::string::npos) << run.out;
  EXPECT_EQ(run.out.find("PyTorch"), std::string::npos) << run.out;
}

TEST(Bench, GrowthDrawsAPictureForEachSize) {
  const qkv::testing::TempFolder pictures;
  const auto run = run_program(
      {"bench", "growth", "--quick", "--json", "--threads", "2", "--rounds", "5", "--out", pictures / "new/folder"});
  ASSERT_EQ(run.code, 0) << run.err;
  std::set<std::string> names;
  for (const auto& row : rows_of(run.out)) names.insert(row["case"]);
  EXPECT_EQ(names.size(), 1u + 6 * 2) << run.out;
  EXPECT_TRUE(names.count("growth causal, keys 256")) << run.out;
  EXPECT_TRUE(names.count("growth GPT, threads 1")) << run.out;
  for (const char* name : {"attention", "length", "width", "batch", "threads"}) {
    const std::string svg = read_text(pictures / ("new/folder/growth_" + std::string(name) + ".svg"));
    EXPECT_NE(svg.find("<svg"), std::string::npos) << name;
  }
}

TEST(Bench, TheLegendSaysThePowerThatTimeGrowsWith) {
  const bench::Sweep sweep{"length", "GPT", "length", {{"kind", "train"}}, {"length"}, {16, 32, 64}};
  bench::Growth growth{&sweep, {}};
  for (const int n : sweep.values) {
    bench::Measured m;
    m.who = {{"qkv", {}, {1e-6 * n * n}, 0}, {"PyTorch", {}, {1e-6 * n}, 0}};
    growth.measured.push_back(std::move(m));
  }
  const Plot plot = bench::growth_plot({&growth});
  ASSERT_EQ(plot.series.size(), 2u);
  EXPECT_EQ(plot.series[0].name, "qkv, GPT: power 2");
  EXPECT_EQ(plot.series[1].name, "PyTorch, GPT: power 1");
  EXPECT_NEAR(plot.series[0].y[1], 1.024, 1e-9);
}

TEST(Bench, EpochsReadTheTextTheyAreGiven) {
  const qkv::testing::TempFolder text;
  write_file_atomic(text / "wiki.txt",
                    std::string_view("Ada was born in Oz.\nBob was born in Ur.\nCem lives in Ys.\n"));
  const std::string folder = text / ".";
  const auto of_text = run_program({"bench", "epoch", "--only", "reading", "--data", folder, "--quick", "--json",
                                    "--threads", "1", "--rounds", "5"});
  ASSERT_EQ(of_text.code, 0) << of_text.err;
  EXPECT_EQ(rows_of(of_text.out)[1]["text"], folder);
  nlohmann::json sizes;
  for (const bench::BenchCase& c : bench::case_table()) {
    if (std::string(c.name) == "reading") sizes = bench::sizes_of(c, true);
  }
  sizes["every"] = 1;
  bench::add_text(sizes, {folder});
  ASSERT_EQ(sizes["batches"].size(), 2u);  // two and one of three documents
  EXPECT_EQ(sizes["batches"][1].size(), 1u);
  EXPECT_EQ(sizes["batches"][0][0][0].size(), sizes["batches"][0][0][1].size());
  expect_refused({"bench", "epoch", "--data", folder + "/none"}, 2, "none");
}

TEST(Bench, Refusals) {
  expect_refused({"bench", "dance"}, 2, "dance");
  expect_refused({"bench", "train", "--only", "nothing"}, 2, "gpt dropout");
  expect_refused({"bench", "--rounds", "2"}, 2, "--rounds");
  expect_refused({"bench", "--target", "ABACUS"}, 2, "--target");
  const auto run = run_program({"bench", "gemm", "--quick", "--threads", "1", "--torch", "/nowhere/python"});
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.err.find("PyTorch did not answer"), std::string::npos) << run.err;
}

}  // namespace
}  // namespace qkv::app
