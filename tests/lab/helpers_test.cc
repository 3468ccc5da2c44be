// The parts the experiments are made of: quadrature, orthonormal keys, formulas, tables and JSON.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "qkv/lab/gaussian.h"
#include "qkv/lab/noisy_lookup.h"
#include "qkv/lab/present.h"
#include "qkv/lab/vectors.h"
#include "qkv/ops/ops.h"

namespace qkv::lab {
namespace {

TEST(NormalNodes, GiveTheMomentsOfANormal) {
  double mass = 0, mean = 0, square = 0, fourth = 0, below = 0;
  for (const QuadratureNode& n : normal_nodes(1, 0.7, 40)) {
    mass += n.weight;
    mean += n.weight * n.x;
    square += n.weight * (n.x - 1) * (n.x - 1);
    fourth += n.weight * std::pow(n.x - 1, 4);
    if (n.x < 0) below += n.weight;
  }
  EXPECT_NEAR(mass, 1, 1e-12);
  EXPECT_NEAR(mean, 1, 1e-12);
  EXPECT_NEAR(square, 0.49, 1e-12);
  EXPECT_NEAR(fourth, 3 * 0.49 * 0.49, 1e-12);
  EXPECT_NEAR(below, 0.5 * std::erfc(1 / 0.7 / std::sqrt(2)), 1e-12);
}

TEST(NormalNodes, CollapseWithoutSpread) {
  const auto nodes = normal_nodes(1, 0, 40);
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(nodes[0].x, 1);
  EXPECT_EQ(nodes[0].weight, 1);
}

TEST(MeanEntropy, HasItsLimits) {
  EXPECT_DOUBLE_EQ(mean_entropy_of_normal_scores(0, 10), std::log(10));
  EXPECT_NEAR(mean_entropy_of_normal_scores(2, 1), 0, 1e-10);  // one key has all the weight
  // Small σ: ln m − σ²(1 − 1/m)/2 + O(σ³), from the entropy's second derivative at uniform weights.
  EXPECT_NEAR(mean_entropy_of_normal_scores(0.01, 10), std::log(10) - 1e-4 * 0.9 / 2, 1e-7);
  EXPECT_LT(mean_entropy_of_normal_scores(60, 10), 0.1);
}

TEST(MeanEntropy, AgreesWithTwoKeysByDirectIntegral) {
  // Two keys: the difference of the scores is N(0, 2σ²), and the entropy that of a coin with its sigmoid.
  const double sigma = 1.5;
  double expected = 0;
  for (const QuadratureNode& n : normal_nodes(0, sigma * std::sqrt(2), 60)) {
    const double p = 1 / (1 + std::exp(-n.x));
    expected += n.weight * plain_entropy(std::vector<double>{p, 1 - p});
  }
  EXPECT_NEAR(mean_entropy_of_normal_scores(sigma, 2), expected, 1e-9);
}

TEST(Orthonormal, RowsAreOrthonormal) {
  Rng rng(3);
  const Tensor u = orthonormal(40, 40, rng);  // [40, 40]
  const Tensor gram = matmul(u, transpose(u, 0, 1));
  for (int64_t i = 0; i < 40; ++i) {
    for (int64_t j = 0; j < 40; ++j) EXPECT_NEAR(gram.at({i, j}), i == j ? 1 : 0, 1e-12);
  }
}

TEST(NoisyLookup, OneHeadMatchesTheBernoulliLimit) {
  NoisyLookup n;
  n.t = 100;  // S is 0 or 1 in nearly every draw: variance ½(1 − 0) of the pair of weights
  EXPECT_NEAR(predicted_moments(n).all.variance, 0.5, 0.02);
  EXPECT_NEAR(predicted_moments(n).all.mean_a, 0.5, 1e-6);
}

TEST(NoisyLookup, SharesOfTheSplitSumToOne) {
  NoisyLookup n;
  n.variance_others = 0.5;
  n.heads = {{1, 0}, {0, 1}};
  const SplitMoments p = predicted_moments(n);
  EXPECT_NEAR(p.all.share, 1, 1e-9);
  EXPECT_NEAR(p.positive.share + p.negative.share, 1, 1e-9);
  EXPECT_NEAR(p.positive.share * p.positive.mean_a + p.negative.share * p.negative.mean_a, p.all.mean_a, 1e-9);
  const MeasuredMoments m = measured_moments(n, 1000, 5);
  EXPECT_NEAR(m.value.positive.share + m.value.negative.share, 1, 1e-12);
  EXPECT_EQ(m.weight_of_a.size(), 1000u);
}

TEST(PlainFormula, DropsBraces) {
  EXPECT_EQ(plain_formula("α_{a} = e^{βt}/2"), "α_a = e^(βt)/2");
  EXPECT_EQ(plain_formula("n^{2}d, P_{i,2j}"), "n²d, P_(i,2j)");
  EXPECT_EQ(plain_formula("e^{tλ_{a}} + 1"), "e^(tλ_a) + 1");
  EXPECT_EQ(plain_formula("no braces"), "no braces");
  EXPECT_EQ(plain_formula("open_{end"), "open_(end)");
}

TEST(Row, JudgesByKindAndNeverAcceptsNaN) {
  Result r;
  r.exact("", "", 1, 1 + 0.9e-5);
  r.exact("", "", 1, 1 + 1.1e-5);
  r.sampled("", "", 0, 0.29, 0.1);
  r.sampled("", "", 0, 0.31, 0.1);
  r.first_order("", "", 0, 0.1, 0.2);
  r.exact("", "", 0, std::nan(""));
  r.timed("", "", 2, 17);
  const bool expected[] = {true, false, true, false, true, false, false};
  for (size_t i = 0; i < r.rows.size(); ++i) EXPECT_EQ(r.rows[i].agrees(), expected[i]) << i;
  EXPECT_EQ(r.disagreements(), 3);  // the stopwatch does not count
}

TEST(Present, JsonHoldsEveryRowAndPicture) {
  const Experiment& e = find_experiment("copy");
  const Settings settings = e.settings();
  const Result r = e.run(settings);
  const auto json = nlohmann::json::parse(result_json(e, settings, r, true));
  EXPECT_EQ(json["name"], "copy");
  EXPECT_EQ(json["settings"]["keys"], 10);
  ASSERT_EQ(json["rows"].size(), r.rows.size());
  for (size_t i = 0; i < r.rows.size(); ++i) {
    EXPECT_EQ(json["rows"][i]["predicted"], r.rows[i].predicted);
    EXPECT_EQ(json["rows"][i]["measured"], r.rows[i].measured);
    EXPECT_EQ(json["rows"][i]["kind"], "exact");
  }
  ASSERT_EQ(json["pictures"].size(), 2u);
  EXPECT_EQ(json["pictures"][0]["type"], "plot");
  EXPECT_EQ(json["pictures"][1]["maps"][0]["columns"], 10);
  EXPECT_FALSE(nlohmann::json::parse(result_json(e, settings, r, false)).contains("pictures"));
}

TEST(Present, TerminalTextAndReportHoldClaimFormulaAndNumbers) {
  const Experiment& e = find_experiment("average");
  const Result r = e.run(e.settings());
  Terminal plain;
  plain.width = 100;
  const std::string text = terminal_result(e, r, plain);
  for (const char* part : {"average: ", "e^(βt)", "predicted", "measured", "0.202305", "All 24 rows agree", "59.5%"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
  Report report("lab");
  add_to_report(report, e, e.settings(), r);
  const std::string html = report.html();
  EXPECT_NE(html.find("0.202305"), std::string::npos);
  EXPECT_NE(html.find("<svg"), std::string::npos);
}

}  // namespace
}  // namespace qkv::lab
