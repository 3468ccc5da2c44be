// Greedy and beam search on a small invented language whose best outputs are known.
#include "qkv/models/decoding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "qkv/base/error.h"

namespace qkv {
namespace {

constexpr int64_t kEnd = 0, kBegin = 1, kVocabulary = 5;

// Scores given by a function of (source, tokens so far).
class Toy final : public StepDecoder {
 public:
  using Scores = std::function<std::vector<double>(int64_t source, const std::vector<int64_t>& prefix)>;
  Toy(int64_t sources, Scores scores) : scores_(std::move(scores)) {
    for (int64_t i = 0; i < sources; ++i) rows_.push_back({i, {}});
  }
  int64_t rows() const override { return static_cast<int64_t>(rows_.size()); }
  Tensor step(std::span<const int64_t> tokens) override {
    std::vector<float> all;
    for (size_t i = 0; i < rows_.size(); ++i) {
      rows_[i].prefix.push_back(tokens[i]);
      for (double p : scores_(rows_[i].source, rows_[i].prefix)) all.push_back(static_cast<float>(std::log(p)));
    }
    rows_stepped += rows();
    return Tensor::from(std::span<const float>(all), {rows(), kVocabulary});
  }
  void select(std::span<const int64_t> rows) override {
    std::vector<Row> next;
    for (int64_t r : rows) next.push_back(rows_[static_cast<size_t>(r)]);
    rows_ = std::move(next);
  }
  int64_t rows_stepped = 0;

 private:
  struct Row {
    int64_t source;
    std::vector<int64_t> prefix;
  };
  Scores scores_;
  std::vector<Row> rows_;
};

// Token 2 looks best at first (0.5) but leads to an even spread; token 3 (0.4) leads to a sure end.
std::vector<double> garden_path(int64_t, const std::vector<int64_t>& prefix) {
  if (prefix.size() == 1) return {0.05, 0.025, 0.5, 0.4, 0.025};
  if (prefix[1] == 3) return {0.96, 0.01, 0.01, 0.01, 0.01};
  return {0.2, 0.2, 0.2, 0.2, 0.2};
}

TEST(Search, GreedyFollowsTheLargest) {
  Toy toy(1, garden_path);
  const auto found = search(toy, {.begin = kBegin, .end = kEnd, .max_lengths = {4}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0][0].tokens, (std::vector<int64_t>{2}));  // ties go to the smaller token: the end
  EXPECT_NEAR(found[0][0].log_probability, std::log(0.5 * 0.2), 1e-6);
  EXPECT_TRUE(found[0][0].complete);
}

TEST(Search, BeamFindsTheMoreProbableSentence) {
  Toy toy(1, garden_path);
  const auto found = search(toy, {.begin = kBegin, .end = kEnd, .beam = 3, .n_best = 3, .max_lengths = {4}});
  ASSERT_EQ(found[0].size(), 3u);
  EXPECT_EQ(found[0][0].tokens, (std::vector<int64_t>{3}));
  EXPECT_NEAR(found[0][0].log_probability, std::log(0.4 * 0.96), 1e-6);
  EXPECT_EQ(found[0][1].tokens, (std::vector<int64_t>{2}));
  EXPECT_NEAR(found[0][1].log_probability, std::log(0.1), 1e-6);
  EXPECT_TRUE(found[0][2].tokens.empty());
  EXPECT_GE(found[0][1].score, found[0][2].score);
}

TEST(Search, AnOutputBeginsAsTold) {
  for (const int64_t beam : {1, 3}) {
    Toy toy(2, garden_path);
    const auto found = search(toy, {.begin = kBegin, .end = kEnd, .beam = beam, .forced = {3, 4}, .max_lengths = {5}});
    for (const auto& best : found) {
      EXPECT_EQ(best[0].tokens, (std::vector<int64_t>{3, 4}));  // and then the end, by itself
      EXPECT_NEAR(best[0].log_probability, std::log(0.4 * 0.01 * 0.96), 1e-6);
    }
  }
  Toy toy(1, garden_path);
  EXPECT_THROW(search(toy, {.begin = kBegin, .end = kEnd, .forced = {kVocabulary}, .max_lengths = {4}}), ConfigError);
}

// Source s wants s tokens of 4 and then the end.
std::vector<double> counting(int64_t source, const std::vector<int64_t>& prefix) {
  const bool over = static_cast<int64_t>(prefix.size()) > source;
  return over ? std::vector<double>{0.9, 0.02, 0.02, 0.03, 0.03} : std::vector<double>{0.02, 0.02, 0.02, 0.04, 0.9};
}

TEST(Search, SentencesOfDifferentLengthsKeepTheirOrderAndStopOnTime) {
  for (int64_t beam : {1, 2, 4}) {
    Toy toy(5, counting);
    const auto found = search(toy, {.begin = kBegin, .end = kEnd, .beam = beam, .max_lengths = {20}});
    for (size_t s = 0; s < 5; ++s) {
      EXPECT_EQ(found[s][0].tokens, std::vector<int64_t>(s, 4)) << "beam " << beam;
      EXPECT_NEAR(found[s][0].log_probability, static_cast<double>(s + 1) * std::log(0.9), 1e-5);
    }
    if (beam == 1) {
      EXPECT_EQ(toy.rows_stepped, 1 + 2 + 3 + 4 + 5) << "no step after the end";
    }
  }
}

TEST(Search, LengthLimitAndPenalty) {
  Toy toy(1, [](int64_t, const std::vector<int64_t>&) { return std::vector<double>{0.3, 0, 0, 0, 0.7}; });
  const auto cut = search(toy, {.begin = kBegin, .end = kEnd, .max_lengths = {3}});
  EXPECT_EQ(cut[0][0].tokens, (std::vector<int64_t>{4, 4, 4}));
  EXPECT_FALSE(cut[0][0].complete);

  const auto best = [](double penalty) {
    Toy again(1, [](int64_t, const std::vector<int64_t>& prefix) {
      return prefix.size() == 1
                 ? std::vector<double>{0.5, 0, 0, 0, 0.5}
                 : std::vector<double>{prefix.size() == 4 ? 1.0 : 0.1, 0, 0, 0, prefix.size() == 4 ? 0.0 : 0.9};
    });
    return search(again, {.begin = kBegin, .end = kEnd, .beam = 3, .length_penalty = penalty, .max_lengths = {9}})[0][0]
        .tokens.size();
  };
  EXPECT_EQ(best(0), 0u);
  EXPECT_EQ(best(2), 3u);
}

TEST(Search, ScoresThatAreNotNumbersGiveAnEmptyHypothesis) {
  Toy toy(1, [](int64_t, const std::vector<int64_t>&) { return std::vector<double>(5, std::nan("")); });
  const auto found = search(toy, {.begin = kBegin, .end = kEnd, .beam = 2, .max_lengths = {3}});
  ASSERT_EQ(found[0].size(), 1u);
  EXPECT_TRUE(found[0][0].tokens.empty());
  EXPECT_FALSE(found[0][0].complete);
}

TEST(Search, OptionsMustMakeSense) {
  Toy toy(2, counting);
  EXPECT_THROW(search(toy, {.beam = 0, .max_lengths = {3}}), ConfigError);
  EXPECT_THROW(search(toy, {.beam = 2, .n_best = 3, .max_lengths = {3}}), ConfigError);
  EXPECT_THROW(search(toy, {.max_lengths = {3, 3, 3}}), ConfigError);
  EXPECT_THROW(search(toy, {.max_lengths = {0}}), ConfigError);
  Toy none(0, counting);
  EXPECT_TRUE(search(none, {.max_lengths = {3}}).empty());
}

}  // namespace
}  // namespace qkv
