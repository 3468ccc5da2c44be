// Pictures from the command line: train, eval, predict and map without data; damaged data named.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/run_program.h"
#include "qkv/data/images.h"
#include "view/png.h"

namespace qkv {
namespace {

using testing::expect_refused;
using testing::ProgramRun;
using testing::run_program;
using testing::TempFolder;
using Json = nlohmann::json;

/// One run trained on shapes, shared by the tests that look at it.
class TrainedOnShapes : public testing::TrainedRun<TrainedOnShapes> {
 public:
  static std::vector<std::string> command(const std::string& run) {
    return {"train",    "images",   "--data",  "shapes",   "--train-size",
            "400",      "--patch",  "7",       "--width",  "16",
            "--layers", "2",        "--heads", "2",        "--validation-size",
            "60",       "--epochs", "20",      "--warmup", "10",
            "--batch",  "20",       "--out",   run,        "--json"};
  }
};

TEST_F(TrainedOnShapes, SaysWhatCameOfIt) {
  ASSERT_EQ(result_->code, 0) << result_->err;
  const Json j = Json::parse(result_->out);
  EXPECT_EQ(j.at("task"), "images");
  EXPECT_LT(j.at("loss").get<double>(), 2.0) << "a guess is log 8 = 2.08";
  EXPECT_GT(j.at("accuracy").get<double>(), 0.2) << "a guess is 0.125";
  EXPECT_TRUE(j.at("accuracy_by_class").contains("crescent"));
  const std::string html = read_text(run() + "/report.html");
  for (const char* part :
       {"Confusion", "Accuracy by class", "The most confident mistakes", "Where it looks", "rollout"}) {
    EXPECT_NE(html.find(part), std::string::npos) << part;
  }
}

TEST_F(TrainedOnShapes, EvaluatesTheTestSetOnRequest) {
  const Json val = Json::parse(run_program({"eval", run(), "--json"}).out);
  const Json test = Json::parse(run_program({"eval", run(), "--data", "test", "--json"}).out);
  EXPECT_EQ(val.at("accuracy"), Json::parse(result_->out).at("accuracy"));
  EXPECT_EQ(val.at("notes")[0], "60 validation images from shapes");
  EXPECT_EQ(test.at("notes")[0], "1000 test images from shapes");
  const ProgramRun shown = run_program({"eval", run()});
  EXPECT_NE(shown.out.find("crescent"), std::string::npos);
  EXPECT_NE(shown.out.find("val:"), std::string::npos);
}

TEST_F(TrainedOnShapes, PredictsClassAndProbability) {
  const ProgramRun one = run_program({"predict", run(), "val:0", "val:1"});
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(std::count(one.out.begin(), one.out.end(), '\n'), 2);
  EXPECT_EQ(std::count(one.out.begin(), one.out.end(), '\t'), 2);
  const Json j = Json::parse(run_program({"predict", run(), "val:0", "--n-best", "8", "--json"}).out);
  EXPECT_EQ(j.at("input"), "val:0");
  double sum = 0;
  for (const Json& answer : j.at("answers")) sum += answer.at("probability").get<double>();
  EXPECT_NEAR(sum, 1, 1e-5);
  EXPECT_EQ(one.out.substr(0, one.out.find('\t')), j.at("answers")[0].at("text").get<std::string>());
}

TEST_F(TrainedOnShapes, DrawsMapsOverThePicture) {
  const std::string png = *folder_ / "map.png", csv = *folder_ / "map.csv";
  const ProgramRun drawn = run_program({"map", run(), "val:17", "--out", png});
  ASSERT_EQ(drawn.code, 0) << drawn.err;
  const testing::Png picture(read_file(png));
  EXPECT_GT(picture.width(), 2 * 2 * 112);
  EXPECT_GT(picture.height(), 3 * 2 * 112);
  // The map itself can be classified no more: it is of another size, and the error names it.
  expect_refused({"map", run(), png}, 1, "cannot use " + png);
  ASSERT_EQ(run_program({"map", run(), "val:17", "--out", csv}).code, 0);
  const std::string table = read_text(csv);
  EXPECT_NE(table.find("rollout"), std::string::npos);
  EXPECT_NE(table.find("self layer 1 head 1"), std::string::npos);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 1 + 5 * 16);
  ASSERT_EQ(run_program({"map", run(), "--examples", "2", "--out", *folder_ / "maps.html"}).code, 0);
  EXPECT_NE(read_text(*folder_ / "maps.html").find("<svg"), std::string::npos);
  EXPECT_NE(run_program({"map", run(), "val:17", "--layer", "1", "--head", "0"}).out.find("val:17"), std::string::npos);
}

TEST_F(TrainedOnShapes, RefusesWhatIsNotThere) {
  expect_refused({"predict", run(), "val:60"}, 2, "val:0 to val:59");
  expect_refused({"predict", run(), "gone.png"}, 1, "cannot read gone.png");
  expect_refused({"eval", run(), "--data", *folder_ / "none"}, 1, *folder_ / "none");
}

class DamagedData : public ::testing::Test {
 protected:
  void SetUp() override {
    put("train-images-idx3-ubyte", images(20));
    put("train-labels-idx1-ubyte", labels(20));
    put("t10k-images-idx3-ubyte", images(5));
    put("t10k-labels-idx1-ubyte", labels(5));
  }
  static std::string word(uint32_t v) {
    return {static_cast<char>(v >> 24), static_cast<char>(v >> 16), static_cast<char>(v >> 8), static_cast<char>(v)};
  }
  static std::string images(uint32_t n, uint32_t side = 8) {
    return word(0x803) + word(n) + word(side) + word(side) + std::string(n * side * side, '\x07');
  }
  static std::string labels(uint32_t n) {
    std::string bytes = word(0x801) + word(n);
    for (uint32_t i = 0; i < n; ++i) bytes.push_back(static_cast<char>(i % 3));
    return bytes;
  }
  void put(const std::string& name, const std::string& bytes) { write_file_atomic(folder_ / name, bytes); }
  std::vector<std::string> train() const {
    return {"train", "images",  "--data", folder_.path(), "--epochs", "1",     "--width",
            "8",     "--heads", "2",      "--layers",     "1",        "--out", folder_ / "run"};
  }
  TempFolder folder_;
};

TEST_F(DamagedData, SoundFilesTrain) { EXPECT_EQ(run_program(train()).code, 0); }

TEST_F(DamagedData, EveryDamageIsNamed) {
  put("train-images-idx3-ubyte", word(0x801) + images(20).substr(4));
  expect_refused(train(), 1, (folder_ / "train-images-idx3-ubyte") + ": wrong magic number");
  put("train-images-idx3-ubyte", images(20).substr(0, 500));
  expect_refused(train(), 1, (folder_ / "train-images-idx3-ubyte") + ": truncated");
  put("train-images-idx3-ubyte", images(19));
  expect_refused(train(), 1, "19 images");
  put("train-images-idx3-ubyte", images(20, 12));
  expect_refused(train(), 1, (folder_ / "t10k-images-idx3-ubyte") + ": its images are 8x8");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

}  // namespace
}  // namespace qkv
