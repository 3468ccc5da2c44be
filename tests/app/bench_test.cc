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

TEST(Bench, RunsOneCaseForPeople) {
  const auto run = run_program({"bench", "decode", "--only", "gpt", "--quick", "--threads", "2", "--rounds", "5"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("FMA peak"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("decode gpt  2 threads"), std::string::npos) << run.out;
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
