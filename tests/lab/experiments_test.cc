// Every experiment: predictions and measurements agree, with its default parameters and with others.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "qkv/base/error.h"
#include "qkv/lab/experiment.h"

namespace qkv::lab {
namespace {

using Options = std::vector<std::pair<const char*, const char*>>;

Result run(const char* name, const Options& options = {}) {
  const Experiment& e = find_experiment(name);
  Settings settings = e.settings();
  for (const auto& [option, value] : options) settings.set(option, value);
  return e.run(settings);
}

std::string shown(const Row& row) {
  return row.at + ", " + row.quantity + ": predicted " + std::to_string(row.predicted) + ", measured " +
         std::to_string(row.measured) + ", standard error " + std::to_string(row.standard_error);
}

const Row& find_row(const Result& r, const std::string& at, const std::string& quantity) {
  for (const Row& row : r.rows) {
    if (row.at == at && row.quantity == quantity) return row;
  }
  throw ConfigError("no row '" + at + "' | '" + quantity + "'");
}

// The cost experiment times long sequences; a short one asks the same questions.
Options quick(const std::string& name) {
  return name == "cost" ? Options{{"length", "256"}, {"widest", "64"}} : Options{};
}

class EveryExperiment : public testing::TestWithParam<const char*> {};

TEST_P(EveryExperiment, AgreesWithItsPredictions) {
  const Result r = run(GetParam(), quick(GetParam()));
  EXPECT_FALSE(r.claim.empty());
  EXPECT_FALSE(r.formula.empty());
  EXPECT_FALSE(r.notes.empty());
  ASSERT_FALSE(r.rows.empty());
  for (const Row& row : r.rows) {
    if (row.kind == Kind::timed) continue;  // a busy machine must not fail a test
    EXPECT_TRUE(row.agrees()) << shown(row);
    if (row.kind == Kind::exact) {
      EXPECT_LE(std::abs(row.difference()), 1e-5) << shown(row);
    }
    if (row.kind == Kind::sampled && row.standard_error > 0) {
      EXPECT_LE(std::abs(row.difference()), 3 * row.standard_error) << shown(row);
    }
  }
  EXPECT_EQ(r.disagreements(), 0);
}

TEST_P(EveryExperiment, HasPicturesThatCanBeDrawn) {
  const Result r = run(GetParam(), quick(GetParam()));
  ASSERT_FALSE(r.pictures.empty());
  Terminal plain;
  plain.width = 100;
  for (const Picture& picture : r.pictures) {
    EXPECT_NE(to_svg(draw_picture(picture)).find("<svg"), std::string::npos);
    EXPECT_GT(terminal_picture(picture, plain).size(), 100u);
  }
}

TEST_P(EveryExperiment, IsReproducible) {
  const Result a = run(GetParam(), quick(GetParam())), b = run(GetParam(), quick(GetParam()));
  ASSERT_EQ(a.rows.size(), b.rows.size());
  for (size_t i = 0; i < a.rows.size(); ++i) {
    if (a.rows[i].kind == Kind::timed) continue;
    EXPECT_EQ(a.rows[i].measured, b.rows[i].measured) << shown(a.rows[i]);
  }
}

class SampledExperiment : public testing::TestWithParam<const char*> {};

TEST_P(SampledExperiment, HoldsForOtherSeeds) {
  int sampled = 0, outside = 0;
  for (const char* seed : {"2", "3", "17", "123456789"}) {
    Options options = quick(GetParam());
    options.emplace_back("seed", seed);
    for (const Row& row : run(GetParam(), options).rows) {
      if (row.kind == Kind::sampled) {
        ++sampled;
        outside += row.agrees() ? 0 : 1;
      } else if (row.kind != Kind::timed) {
        EXPECT_TRUE(row.agrees()) << "seed " << seed << ": " << shown(row);
      }
    }
  }
  // Three standard errors leave out 0.3% of normal draws; rare events have heavier tails.
  EXPECT_LE(outside, 1 + sampled / 33);
}

std::vector<const char*> names(bool seeded_only) {
  std::vector<const char*> all;
  for (const Experiment& e : experiment_table()) {
    if (!seeded_only || e.settings().has("seed")) all.push_back(e.name);
  }
  return all;
}
std::string test_name(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}
INSTANTIATE_TEST_SUITE_P(Lab, EveryExperiment, testing::ValuesIn(names(false)), test_name);
INSTANTIATE_TEST_SUITE_P(Lab, SampledExperiment, testing::ValuesIn(names(true)), test_name);

TEST(Lab, ListsEveryExperimentOnce) {
  const char* const expected[] = {"copy",      "average",        "kinds",         "noisy-keys",    "two-heads",
                                  "subspaces", "beta",           "perturbed-key", "elongated-key", "key-query-value",
                                  "identity",  "running-linear", "convolution",   "positions",     "cost",
                                  "depth",     "masks",          "normalisers",   "worked"};
  ASSERT_EQ(experiment_table().size(), std::size(expected));
  for (size_t i = 0; i < std::size(expected); ++i) EXPECT_STREQ(experiment_table()[i].name, expected[i]);
}

TEST(Lab, TwoHeadsAreAtLeastTenTimesSteadierThanOne) {
  const Result r = run("two-heads");
  const Row& ratio = find_row(r, "k_a noisy", "variance of one head / of two");
  EXPECT_GE(ratio.predicted, 10);
  EXPECT_GE(ratio.measured, 10);
  const Row& negative = find_row(r, "k_a noisy", "share of draws with a negative length");
  EXPECT_NEAR(negative.predicted, 0.5 * std::erfc(1.0), 1e-6);  // Φ(−1/√½) = 7.9%
  EXPECT_GE(find_row(r, "k_a noisy", "variance of one head / of two, lengths > 0").measured, 50);
  EXPECT_NEAR(find_row(r, "no noise", "heads μ_a ± μ_b: weight of v_a").measured, 0.75, 1e-6);
  EXPECT_NO_THROW(find_row(r, "all keys noisy", "variance of one head / of two"));
  for (const Series& s : std::get<Plot>(r.pictures[1]).series) {
    for (const double y : s.y) EXPECT_GT(y, 1e-6) << s.name << " is drawn at the floor of the picture, not where it is";
  }
}

TEST(Lab, FirstOrderErrorShrinksAsTheSquareOfTheStep) {
  const Result r = run("perturbed-key", {{"halvings", "10"}});
  double before = 0;
  int seen = 0;
  for (const Row& row : r.rows) {
    if (row.quantity != "first order β(q·ε)α_a" || row.at == "ε reversed") continue;
    const double error = std::abs(row.difference());
    if (++seen > 5) {
      EXPECT_NEAR(before / error, 4, 0.05) << shown(row);
    }
    before = error;
  }
  EXPECT_EQ(seen, 11);
}

TEST(Lab, ARandomlyMovedKeyScattersByTheStepAndMovesTheMeanByItsSquare) {
  const Result r = run("perturbed-key", {{"draws", "200000"}});
  const std::vector<double> means = r.measured_of("mean change along v_a − H"),
                            variances = r.measured_of("variance along v_a − H");
  ASSERT_EQ(means.size(), 4u);
  EXPECT_NEAR(means[0] / means[1], 4, 0.6);  // halving σ
  ASSERT_EQ(variances.size(), 4u);           // the smaller σ, the closer to the first order, in which the ratio is 4
  double before = std::numeric_limits<double>::infinity();
  for (size_t i = 1; i < variances.size(); ++i) {
    const double off = std::abs(variances[i - 1] / variances[i] - 4);
    EXPECT_LT(off, before);
    before = off;
  }
  EXPECT_LT(before, 0.3);
  for (const double off : r.measured_of("variance in all other directions")) EXPECT_LE(std::abs(off), 1e-6);
}

TEST(Lab, HardAttentionCopiesAndSoftSpreads) {
  const Result r = run("kinds");
  for (const char* kind : {"self, hard", "cross, hard"}) {
    EXPECT_NEAR(find_row(r, kind, "keys in use, e^entropy").measured, 1, 1e-6);
    EXPECT_LE(find_row(r, kind, "distance from the nearest value").measured, 1e-6);
  }
  for (const char* kind : {"self, soft, β = 0", "cross, soft, β = 0"}) {
    EXPECT_NEAR(find_row(r, kind, "keys in use, e^entropy").measured, 6, 1e-5);
    EXPECT_LE(find_row(r, kind, "distance from the mean of the values").measured, 1e-6);
  }
  EXPECT_LT(find_row(r, "self, x_0 twice as long", "share of inputs that match themselves best").measured, 1);
}

TEST(Lab, TwoHeadsAnswerTwoQuestionsAndOneHeadCannot) {
  const Result r = run("subspaces");
  EXPECT_LE(find_row(r, "t = 10", "two heads: distance from [x_a ; y_b]").measured, 1e-3);
  for (const double off : r.measured_of("one head: distance from [x_a ; y_b]")) EXPECT_GE(off, 1 - 1e-6);
  EXPECT_EQ(find_row(r, "1000 random queries", "one head: queries that come nearer than 1").measured, 0);
}

TEST(Lab, GradientsVanishWithoutResidualsAndComeThroughWithThem) {
  const Result r = run("depth");
  const char* const square = "mean square of the gradient";
  EXPECT_LT(find_row(r, "plain: f(x), layer 0", square).measured, 1e-6);
  EXPECT_GT(find_row(r, "residual: x + f(x), layer 0", square).measured, 100);
  EXPECT_LT(find_row(r, "pre-norm: x + f(N(x)), layer 0", square).measured, 15);
  EXPECT_GT(find_row(r, "pre-norm: x + f(N(x)), layer 0", "unchanged part").measured, 0.7);
  EXPECT_LT(find_row(r, "post-norm: N(x + f(x)), layer 0", "unchanged part").measured, 0.2);
}

TEST(Lab, ZerosOfASparseNormaliserAreNotCalledMasked) {
  const Result r = run("normalisers");
  Terminal plain;
  plain.width = 100;
  for (const Picture& picture : r.pictures) {
    EXPECT_EQ(terminal_picture(picture, plain).find("masked"), std::string::npos);
    EXPECT_EQ(to_svg(draw_picture(picture)).find("masked"), std::string::npos);
  }
}

TEST(Lab, LongerKeysGainOrLoseBySign) {
  const Result r = run("elongated-key");
  const std::vector<double> weights = r.measured_of("weight of v_a");  // rising α, first q·k > 0, then q·k < 0
  const size_t half = weights.size() / 2;
  for (size_t i = 1; i < half; ++i) {
    EXPECT_GT(weights[i], weights[i - 1]);
    EXPECT_LT(weights[half + i], weights[half + i - 1]);
  }
}

TEST(Lab, ConvolutionIsExactForKernels3And5) {
  for (const char* channels : {"3", "8"}) {
    const Result r = run("convolution", {{"channels", channels}});
    for (const char* kernel : {"3", "5"}) {
      for (const std::string& count : {std::string("1"), std::string(channels)}) {
        const std::string point = std::string("kernel ") + kernel + ", channels " + count;
        EXPECT_LE(find_row(r, point, "largest error, β = 30").measured, 1e-5);
        EXPECT_LE(find_row(r, point, "largest error, hard").measured, 1e-5);
      }
    }
  }
}

TEST(Lab, WorkedNumbersAreTheKnownOnes) {
  const Result r = run("worked");
  const auto near = [&](const char* at, const char* quantity, double expected) {
    EXPECT_NEAR(find_row(r, at, quantity).measured, expected, 1e-6) << at << " " << quantity;
  };
  near("1. one query", "weights[0,0]", 0.465369);
  near("1. one query", "weights[0,1]", 0.034631);
  near("1. one query", "output[0,0]", -1.663422);
  near("1. one query", "output[0,1]", 0.896106);
  near("1. one query", "output[0,2]", 0.034631);
  near("2. one head", "weights[0,3]", 0.998200);
  near("2. one head", "weights[1,0]", 0.597320);
  near("2. one head", "weights[2,2]", 0.237022);
  near("2. one head", "output[0,0]", -0.752201);
  near("2. one head", "output[1,1]", -6.586861);
  near("2. one head", "output[3,1]", -1.497183);
  near("3. two heads", "Z[0,0]", -6.046649);
  near("3. two heads", "Z[1,2]", 10.579681);
  near("3. two heads", "Z[2,2]", -0.011581);
  near("3. two heads", "Z[3,1]", 4.874288);
}

TEST(Lab, WrongAnswersFailAsTheyShould) {
  const Result average = run("average");
  EXPECT_GT(find_row(average, "t = 1", "weight of all others").measured, 0.5);
  const Result beta = run("beta");
  EXPECT_LT(find_row(beta, "word keys, β = 1", "largest weight").measured, 0.5);
  EXPECT_NE(find_row(beta, "e^(+βz), β = 10", "index of the word that wins").measured,
            find_row(beta, "e^(−βz), β = 10", "index of the word that wins").measured);
  const Result linear = run("running-linear");
  EXPECT_GT(find_row(linear, "β = 0", "largest error against W x_i").measured, 0.1);
  EXPECT_EQ(find_row(linear, "β = 0", "largest difference between two outputs").measured, 0);
}

struct Nonsense {
  const char* experiment;
  Options options;
  const char* message;
};
void PrintTo(const Nonsense& n, std::ostream* out) { *out << n.experiment << " " << n.message; }

class Refused : public testing::TestWithParam<Nonsense> {};
TEST_P(Refused, WithOneClearLine) {
  try {
    run(GetParam().experiment, GetParam().options);
    FAIL() << "was accepted";
  } catch (const ConfigError& e) {
    const std::string what = e.what();
    EXPECT_NE(what.find(GetParam().message), std::string::npos) << what;
    EXPECT_EQ(what.find('\n'), std::string::npos);
  }
}
INSTANTIATE_TEST_SUITE_P(
    Lab, Refused,
    testing::Values(
        Nonsense{"copy", {{"keys", "0"}}, "--keys: '0'"}, Nonsense{"copy", {{"keys", "-3"}}, "--keys"},
        Nonsense{"copy", {{"keys", "17"}}, "17 orthonormal keys need at least 17 dimensions"},
        Nonsense{"copy", {{"t", "nan"}}, "--t"}, Nonsense{"average", {{"dim", "9"}}, "--dim 9 is too small"},
        Nonsense{"noisy-keys", {{"variance", "-1"}}, "--variance: '-1'"},
        Nonsense{"noisy-keys", {{"dim", "4"}}, "--dim 4 is too small"},
        Nonsense{"two-heads", {{"samples", "0"}}, "--samples"}, Nonsense{"two-heads", {{"sigma", "-0.5"}}, "--sigma"},
        Nonsense{"beta", {{"words", "one"}}, "--words"}, Nonsense{"beta", {{"query", "42"}}, "'42'"},
        Nonsense{"perturbed-key", {{"step", "0"}}, "--step"}, Nonsense{"elongated-key", {{"alpha", "1"}}, "--alpha"},
        Nonsense{"key-query-value", {{"dim", "3"}}, "at least 4 dimensions"},
        Nonsense{"identity", {{"order", "sideways"}}, "reverse, shift, random"},
        Nonsense{"running-linear", {{"keys", "20"}}, "--dim 16 is too small"},
        Nonsense{"convolution", {{"kernel", "0"}}, "--kernel"}, Nonsense{"positions", {{"dim", "7"}}, "even"},
        Nonsense{"masks", {{"valid", "9"}}, "--valid 9"}, Nonsense{"normalisers", {{"scores", "1,x"}}, "--scores"},
        Nonsense{"normalisers", {{"scores", "1"}}, "at least two"},
        Nonsense{"kinds", {{"keys", "20"}}, "--dim 16 is too small"}, Nonsense{"subspaces", {{"keys", "2"}}, "--keys"},
        Nonsense{"depth", {{"gain", "9"}}, "--gain"}, Nonsense{"worked", {{"part", "four"}}, "one-head"}));

TEST(Lab, UnknownExperimentIsRefusedWithTheList) {
  try {
    find_experiment("copies");
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_NE(std::string(e.what()).find("copy, average"), std::string::npos);
  }
}

struct Variation {
  const char* experiment;
  Options options;
};
void PrintTo(const Variation& v, std::ostream* out) { *out << v.experiment; }

class OtherParameters : public testing::TestWithParam<Variation> {};
TEST_P(OtherParameters, AgreeAsWell) {
  for (const Row& row : run(GetParam().experiment, GetParam().options).rows) {
    if (row.kind == Kind::timed) continue;
    EXPECT_TRUE(row.agrees()) << shown(row);
  }
}
INSTANTIATE_TEST_SUITE_P(
    Lab, OtherParameters,
    testing::Values(Variation{"copy", {{"keys", "2"}, {"dim", "2"}, {"t", "100"}}},
                    Variation{"copy", {{"keys", "200"}, {"dim", "256"}, {"beta", "0.125"}}},
                    Variation{"copy", {{"t", "0"}}}, Variation{"average", {{"keys", "3"}, {"dim", "3"}, {"t", "100"}}},
                    Variation{"average", {{"keys", "64"}, {"dim", "64"}}},
                    Variation{"kinds", {{"keys", "3"}, {"dim", "3"}, {"queries", "1"}}},
                    Variation{"kinds", {{"keys", "20"}, {"dim", "64"}, {"beta", "3"}, {"length", "1"}}},
                    Variation{"subspaces", {{"keys", "3"}, {"dim", "3"}, {"queries", "50"}}},
                    Variation{"subspaces", {{"keys", "30"}, {"dim", "32"}, {"beta", "0.5"}, {"queries", "200"}}},
                    Variation{"depth", {{"layers", "8"}, {"gain", "1"}}},
                    Variation{"depth", {{"layers", "40"}, {"dim", "256"}, {"gain", "0.2"}, {"draws", "8"}}},
                    Variation{"perturbed-key", {{"sigma", "1"}, {"keys", "3"}}},
                    Variation{"noisy-keys", {{"t", "3"}, {"epsilon", "0.001"}}},
                    Variation{"noisy-keys", {{"variance", "0"}, {"epsilon", "0"}}},
                    Variation{"two-heads", {{"keys", "3"}, {"dim", "3"}, {"t", "5"}}},
                    Variation{"two-heads", {{"variance", "0"}}},
                    Variation{"two-heads", {{"sigma", "0.2"}, {"t", "50"}}},
                    Variation{"beta", {{"beta", "7"}, {"keys", "5"}, {"dim", "64"}}},
                    Variation{"beta", {{"words", "red,green,blue"}, {"query", "GREY"}}},
                    Variation{"perturbed-key", {{"keys", "2"}, {"dim", "2"}, {"beta", "5"}}},
                    Variation{"elongated-key", {{"keys", "2"}, {"dim", "1"}, {"alpha", "10"}}},
                    Variation{"key-query-value", {{"dim", "4"}, {"r", "8"}}},
                    Variation{"identity", {{"order", "random"}, {"keys", "16"}}},
                    Variation{"identity", {{"order", "shift"}, {"keys", "2"}, {"dim", "2"}}},
                    Variation{"running-linear", {{"keys", "2"}, {"inputs", "1"}, {"outputs", "1"}}},
                    Variation{"convolution", {{"length", "2"}, {"kernel", "15"}, {"channels", "1"}}},
                    Variation{"convolution", {{"kernel", "1"}}},
                    Variation{"positions", {{"dim", "2"}, {"positions", "2"}, {"shift", "1"}, {"column", "0"}}},
                    Variation{"positions", {{"positions", "200"}, {"dim", "64"}, {"shift", "100"}}},
                    Variation{"cost", {{"length", "64"}, {"dim", "1"}, {"widest", "16"}}},
                    Variation{"masks", {{"keys", "2"}, {"valid", "0"}, {"left", "0"}, {"right", "0"}}},
                    Variation{"masks", {{"keys", "40"}, {"valid", "40"}, {"left", "100"}}},
                    Variation{"normalisers", {{"scores", "0,0,0"}, {"beta", "10"}}},
                    Variation{"normalisers", {{"scores", "-3,4,4,1"}, {"beta", "1"}}},
                    Variation{"worked", {{"part", "two-heads"}}}));

}  // namespace
}  // namespace qkv::lab
