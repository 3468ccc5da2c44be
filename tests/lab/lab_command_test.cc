// The command: list, one experiment, all of them, and what it refuses.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "qkv/app/command.h"
#include "qkv/base/error.h"

namespace qkv::app {
namespace {

std::string output_of(const Arguments& arguments) {
  testing::internal::CaptureStdout();
  int code = -1;
  try {
    code = run_lab(arguments);
  } catch (...) {
    testing::internal::GetCapturedStdout();
    throw;
  }
  EXPECT_EQ(code, 0);
  return testing::internal::GetCapturedStdout();
}

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class LabCommand : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("qkv_lab_test_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string file(const char* name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_;
};

TEST_F(LabCommand, ListsTheExperiments) {
  const std::string text = output_of({});
  for (const char* name : {"copy", "two-heads", "key-query-value", "worked"}) {
    EXPECT_NE(text.find(std::string("\n  ") + name + " "), std::string::npos) << name;
  }
}

TEST_F(LabCommand, PrintsOneExperiment) {
  const std::string text = output_of({"copy", "--keys", "5", "--t", "10"});
  EXPECT_NE(text.find("copy: A query"), std::string::npos);
  EXPECT_NE(text.find("t = 10"), std::string::npos);
  EXPECT_NE(text.find("All 15 rows agree."), std::string::npos);
}

TEST_F(LabCommand, HelpShowsEveryParameter) {
  const std::string text = output_of({"two-heads", "--help"});
  for (const char* option :
       {"--keys", "--dim", "--t", "--variance", "--sigma", "--samples", "--seed", "--json", "--out"}) {
    EXPECT_NE(text.find(option), std::string::npos) << option;
  }
}

TEST_F(LabCommand, JsonFollowsTheParameters) {
  const auto json = nlohmann::json::parse(output_of({"average", "--keys", "4", "--json"}));
  EXPECT_EQ(json["settings"]["keys"], 4);
  EXPECT_TRUE(json["agrees"]);
}

TEST_F(LabCommand, WritesReportAndPictures) {
  output_of({"masks", "--out", file("r.html")});
  EXPECT_NE(content(file("r.html")).find("<svg"), std::string::npos);
  output_of({"masks", "--out", file("p.svg")});
  EXPECT_NE(content(file("p.svg")).find("<svg"), std::string::npos);
  output_of({"copy", "--picture", "2", "--out", file("p.png")});
  EXPECT_EQ(content(file("p.png")).substr(1, 3), "PNG");
}

TEST_F(LabCommand, RunsEverythingIntoOneReport) {
  const std::string text = output_of({"all", "--out", file("lab.html")});
  EXPECT_EQ(text.find("do not agree"), std::string::npos);
  const std::string html = content(file("lab.html"));
  EXPECT_NE(html.find("copy: a query along one key"), std::string::npos);
  EXPECT_NE(html.find("worked: a small example"), std::string::npos);
}

TEST_F(LabCommand, AllAsJsonHoldsPredictedAndMeasured) {
  const auto json = nlohmann::json::parse(output_of({"all", "--json"}));
  EXPECT_TRUE(json["agrees"]);
  ASSERT_EQ(json["experiments"].size(), 19u);
  for (const auto& e : json["experiments"]) {
    for (const auto& row : e["rows"]) {
      EXPECT_TRUE(row["predicted"].is_number() && row["measured"].is_number()) << e["name"] << row["quantity"];
    }
  }
}

TEST_F(LabCommand, RefusesWrongUsage) {
  const auto message = [](const Arguments& arguments) -> std::string {
    try {
      output_of(arguments);
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(message({"copies"}).find("unknown experiment 'copies'"), std::string::npos);
  EXPECT_NE(message({"copy", "--keys", "0"}).find("--keys"), std::string::npos);
  EXPECT_NE(message({"copy", "--kyes", "3"}).find("qkv lab copy --help"), std::string::npos);
  EXPECT_NE(message({"copy", "--out", "report.pdf"}).find(".html, .svg, .png"), std::string::npos);
  EXPECT_NE(message({"copy", "--picture", "7", "--out", file("x.svg")}).find("has 2"), std::string::npos);
  EXPECT_THROW(output_of({"copy", "--out", file("missing/x.svg")}), IoError);
}

}  // namespace
}  // namespace qkv::app
