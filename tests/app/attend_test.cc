// The attend command against fixtures: every rule of ONNX Attention, and PyTorch's gradients.
#include "qkv/app/attend/attend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "app/run_program.h"
#include "qkv/app/command.h"
#include "qkv/base/parallel.h"
#include "qkv/io/npy.h"
#include "support/paths.h"

namespace qkv::app {
namespace {

using qkv::testing::ProgramRun;
using qkv::testing::run_program;
using qkv::testing::TempFolder;
using Json = nlohmann::json;

const std::string kFolder = qkv::testing::fixtures() + "/attend/";

const Json& cases() {
  static const Json all = Json::parse(read_text(kFolder + "cases.json"));
  return all;
}

// The case's options with files found, and each expected result written to `folder`.
Arguments arguments_of(const Json& test, const TempFolder& folder) {
  Arguments arguments;
  for (std::string word : test["args"]) {
    const bool file = word.size() > 4 && word.compare(word.size() - 4, 4, ".npy") == 0;
    arguments.push_back(file ? kFolder + word : word);
  }
  for (const auto& [option, file] : test["expect"].items()) {
    arguments.push_back(option);
    arguments.push_back(folder / (option + ".npy"));
  }
  return arguments;
}

void expect_equal(const NpyArray& got, const NpyArray& wanted, const std::string& what) {
  ASSERT_EQ(got.shape, wanted.shape) << what;
  ASSERT_EQ(got.type, NpyType::kF32) << what;
  const std::vector<float> a = got.to_f32(), b = wanted.to_f32();
  float largest = 1e-3f;
  for (const float x : b) largest = std::isfinite(x) ? std::max(largest, std::abs(x)) : largest;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(b[i])) {
      EXPECT_TRUE(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) << what << " element " << i << ": " << a[i];
    } else {
      ASSERT_NEAR(a[i], b[i], 2e-5f * largest) << what << " element " << i;
    }
  }
}

void expect_results(const Json& test, const TempFolder& folder) {
  for (const auto& [option, file] : test["expect"].items()) {
    const std::string name = test["name"].get<std::string>() + " " + option;
    expect_equal(load_npy(folder / (option + ".npy")), load_npy(kFolder + file.get<std::string>()), name);
  }
}

std::string quietly_attend(const Arguments& arguments) {
  ::testing::internal::CaptureStdout();
  int code = -1;
  try {
    code = run_attend(arguments);
  } catch (const std::exception& e) {
    ADD_FAILURE() << e.what();
  }
  EXPECT_EQ(code, 0);
  return ::testing::internal::GetCapturedStdout();
}

Arguments plain(const std::vector<std::string>& more = {}) {
  Arguments arguments = {"--q", kFolder + "plain.q.npy", "--k", kFolder + "plain.k.npy",
                         "--v", kFolder + "plain.v.npy"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(Attend, EveryFixture) {
  ASSERT_GE(cases().size(), 90u);
  for (const Json& test : cases()) {
    const TempFolder folder;
    quietly_attend(arguments_of(test, folder));
    if (HasFailure()) FAIL() << test["name"];
    expect_results(test, folder);
    EXPECT_EQ(folder.entries(), static_cast<int>(test["expect"].size())) << test["name"];
  }
}

TEST(Attend, FixturesThroughTheProgram) {
  for (const char* name : {"past_biased", "flat_gqa_past", "external_step_half", "grad_flat_gqa", "big_endian"}) {
    for (const Json& test : cases()) {
      if (test["name"] != name) continue;
      const TempFolder folder;
      Arguments arguments = arguments_of(test, folder);
      arguments.insert(arguments.begin(), "attend");
      const ProgramRun run = run_program(arguments);
      EXPECT_EQ(run.code, 0) << name << " " << run.err;
      EXPECT_EQ(run.err, "") << name;
      EXPECT_NE(run.out.find("wrote"), std::string::npos) << run.out;
      expect_results(test, folder);
    }
  }
}

TEST(Attend, SameBytesForAnyNumberOfThreads) {
  const int before = num_threads();
  Bytes first;
  for (const char* threads : {"1", "2", "3"}) {
    const TempFolder folder;
    quietly_attend(plain({"--causal", "--out", folder / "y.npy", "--threads", threads}));
    const Bytes bytes = read_file(folder / "y.npy");
    if (first.empty()) first = bytes;
    EXPECT_EQ(bytes, first) << threads;
  }
  set_num_threads(before);
}

TEST(Attend, BetaIsScale) {
  const TempFolder folder;
  quietly_attend(plain({"--beta", "-0.5", "--out", folder / "a.npy"}));
  quietly_attend(plain({"--scale", "-0.5", "--out", folder / "b.npy"}));
  quietly_attend(plain({"--score", "dot", "--out", folder / "c.npy"}));
  quietly_attend(plain({"--scale", "1", "--out", folder / "d.npy"}));
  EXPECT_EQ(read_file(folder / "a.npy"), read_file(folder / "b.npy"));
  EXPECT_EQ(read_file(folder / "c.npy"), read_file(folder / "d.npy"));
  EXPECT_NE(read_file(folder / "a.npy"), read_file(folder / "c.npy"));
}

TEST(Attend, StatisticsAgreeWithTheWeights) {
  const TempFolder folder;
  quietly_attend({"--q", kFolder + "plain.q.npy", "--k", kFolder + "plain.k.npy", "--v", kFolder + "plain.v.npy",
                  "--valid-lens", kFolder + "valid_lens_rows.valid_lens.npy", "--stats", folder / "s.json", "--scores",
                  folder / "w.npy", "--scores-stage", "weights"});
  const Json stats = Json::parse(read_text(folder / "s.json"));
  const std::vector<float> weights = load_npy(folder / "w.npy").to_f32();  // [2, 3, 4, 6]
  EXPECT_EQ(stats["shape"], Json({2, 3, 4}));
  EXPECT_EQ(stats["summary"]["empty_rows"], 3);
  double entropies = 0;
  for (size_t row = 0; row < 24; ++row) {
    const auto at = [&](const char* name) { return stats[name][row / 12][row / 4 % 3][row % 4]; };
    double entropy = 0, distance = 0;
    int64_t best = -1;
    for (size_t j = 0; j < 6; ++j) {
      const double w = weights[row * 6 + j];
      if (w > 0) entropy -= w * std::log(w);
      if (w > 0 && (best < 0 || w > weights[row * 6 + static_cast<size_t>(best)])) best = static_cast<int64_t>(j);
      distance += w * std::abs(static_cast<double>(row % 4) - static_cast<double>(j));
    }
    EXPECT_NEAR(at("entropy").get<double>(), entropy, 1e-5);
    EXPECT_NEAR(at("mean_distance").get<double>(), distance, 1e-5);
    EXPECT_EQ(at("argmax"), best);
    EXPECT_EQ(at("lse").is_null(), best < 0);
    EXPECT_NEAR(at("max_weight").get<double>(), best < 0 ? 0 : weights[row * 6 + static_cast<size_t>(best)], 1e-6);
    entropies += entropy;
  }
  EXPECT_NEAR(stats["summary"]["mean_entropy"].get<double>(), entropies / 21, 1e-5);
}

TEST(Attend, MapsArePicturesWithOnePanelAHead) {
  const TempFolder folder;
  quietly_attend(plain({"--causal", "--map", folder / "m.png"}));
  const std::string png = read_text(folder / "m.png");
  EXPECT_EQ(png.substr(1, 3), "PNG");
  quietly_attend(plain({"--causal", "--map", folder / "m.svg"}));
  const std::string svg = read_text(folder / "m.svg");
  EXPECT_NE(svg.find("<svg"), std::string::npos);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
}

TEST(Attend, PrintsASummary) {
  const std::string text = quietly_attend(plain({"--causal", "--softcap", "2"}));
  for (const char* part : {"[2,3,4,8]", "[2,3,6,8]", "0.353553", "causal", "softcap 2", "entropy"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  EXPECT_EQ(text.find("wrote"), std::string::npos);
  const Json json = Json::parse(quietly_attend(plain({"--json"})));
  EXPECT_EQ(json["output"]["shape"], Json({2, 3, 4, 8}));
  EXPECT_EQ(json["weights"]["rows"], 24);
}

TEST(Attend, HelpTeaches) {
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(run_attend({"--help"}), 0);
  const std::string help = ::testing::internal::GetCapturedStdout();
  for (const char* part : {"usage: qkv attend", "np.save", "Which keys a query sees", "--kv-lens", "Backward"}) {
    EXPECT_NE(help.find(part), std::string::npos) << part;
  }
}

TEST(Attend, GradientsOfTheNewKeysOnlyWithAPast) {
  Rng rng(1);
  AttendRequest r;
  r.q = Tensor::randn({1, 2, 3, 4}, rng);
  r.k = Tensor::randn({1, 2, 3, 4}, rng);
  r.v = Tensor::randn({1, 2, 3, 5}, rng);
  r.past_k = Tensor::randn({1, 2, 2, 4}, rng);
  r.past_v = Tensor::randn({1, 2, 2, 5}, rng);
  r.causal = true;
  r.d_out = Tensor::randn({1, 2, 3, 5}, rng);
  const AttendResult result = compute_attend(r);
  EXPECT_EQ(result.d_k.shape(), r.k.shape());
  EXPECT_EQ(result.d_v.shape(), r.v.shape());
  // The value of the last key is seen by the last query alone: its gradient is that query's, times one weight.
  const Tensor weights = attention_score_array(result.q, result.k, result.rule);  // [1, 2, 3, 5]
  for (int64_t h = 0; h < 2; ++h) {
    for (int64_t c = 0; c < 5; ++c) {
      EXPECT_NEAR(result.d_v.at({0, h, 2, c}), weights.at({0, h, 2, 4}) * r.d_out.at({0, h, 2, c}), 1e-6);
    }
  }
}

TEST(Attend, HardWeightsLetOnlyValuesLearn) {
  Rng rng(2);
  AttendRequest r;
  r.q = Tensor::randn({1, 1, 3, 4}, rng);
  r.k = Tensor::randn({1, 1, 3, 4}, rng);
  r.v = Tensor::randn({1, 1, 3, 4}, rng);
  r.normaliser = Normaliser::hard;
  r.d_out = Tensor::full({1, 1, 3, 4}, 1);
  const AttendResult result = compute_attend(r);
  for (const float x : result.d_q.to_vector()) EXPECT_EQ(x, 0);
  for (const float x : result.d_k.to_vector()) EXPECT_EQ(x, 0);
  double sum = 0;
  for (const float x : result.d_v.to_vector()) sum += x;
  EXPECT_NEAR(sum, 12, 1e-5);
}

}  // namespace
}  // namespace qkv::app
