// BLEU equals sacreBLEU's published figures, an independent slow implementation, and sums done by hand.
#include "qkv/data/bleu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "support/paths.h"

namespace qkv {
namespace {

using Lines = std::vector<std::string>;

TEST(Bleu, Tokenizer13a) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"Hello, world.", "Hello , world ."},
      {"It's 3.14, or 1,000.", "It's 3.14 , or 1,000 ."},
      {"a 10-year-old e-mail", "a 10 - year-old e-mail"},
      {"&quot;x&quot; &amp;lt; &lt;y&gt;", "\" x \" < < y >"},
      {"<skipped>a<skipped>", "a"},
      {"(a/b) [c] {d}!?", "( a / b ) [ c ] { d } ! ?"},
      {"wait...", "wait . . ."},
      {"..", ". ."},
      {"5.", "5 ."},
      {".5", ". 5"},
      {"a.5", "a . 5"},
      {"§5.é", "§5 . é"},
      {"über-\nblick", "überblick"},
      {"a\nb", "a b"},
      {"  a \u00A0 b\u3000", "a b"},
      {"", ""},
  };
  for (const auto& [text, tokens] : cases) EXPECT_EQ(tokenize_13a(text), tokens) << text;
}

// Figures that sacreBLEU's own tests publish.
TEST(Bleu, PublishedCorpusFigures) {
  const std::vector<Lines> references = {
      {"The dog bit the man.", "It was not unexpected.", "The man bit him first."},
      {"The dog had bit the man.", "No one was surprised.", "The man had bitten the dog."}};
  const Lines outputs = {"The dog bit the man.", "It wasn't surprising.", "The man had just bitten him."};
  EXPECT_NEAR(corpus_bleu(outputs, references).score, 48.530827, 1e-6);
  EXPECT_EQ(corpus_bleu(Lines{"", "", ""}, references).score, 0.0);
}

TEST(Bleu, PublishedSentenceFigures) {
  const Lines reference = {"producţia de zahăr brut se exprimă în zahăr alb;"};
  const Lines output = {"Producția de zahăr primă va fi exprimată în ceea ce privește zahărul alb;"};
  EXPECT_NEAR(corpus_bleu(output, reference, true).score, 8.493, 1e-3);
  EXPECT_EQ(corpus_bleu(Lines{"this is a cat"}, Lines{"okay thanks"}).score, 0.0);
}

TEST(Bleu, PublishedStatistics) {
  EXPECT_NEAR(bleu_of_counts({{9, 7, 5, 3}, {10, 8, 6, 4}, 11, 11}).score, 83.75922397, 1e-6);
  const BleuScore score =
      corpus_bleu(Lines{"am I am a character sequence"}, Lines{"I am a symbol string sequence a a"});
  EXPECT_EQ(score.counts.matches, (std::vector<int64_t>{4, 2, 1, 0}));
  EXPECT_EQ(score.counts.totals, (std::vector<int64_t>{6, 5, 4, 3}));
  for (const BleuCounts& none : {BleuCounts{{0, 0, 0, 0}, {4, 4, 2, 1}, 0, 1}, {{0, 0, 0, 0}, {0, 0, 0, 0}, 1, 5}}) {
    EXPECT_EQ(bleu_of_counts(none).score, 0.0);
  }
}

// One segment, p = 3/4, 1/3, then no trigram of 2 and no 4-gram of 1: exp smoothing gives 1/(2·2) and 1/(4·1); the
// output has 4 words against 6.
TEST(Bleu, ByHand) {
  const BleuScore score = corpus_bleu(Lines{"a b x c"}, Lines{"a b c d e f"});
  const double expected = 100 * std::exp(1 - 6.0 / 4.0) * std::pow(3.0 / 4 * (1.0 / 3) * (1.0 / 4) * (1.0 / 4), 0.25);
  EXPECT_NEAR(score.score, expected, 1e-10);
  EXPECT_EQ(score.text(), "BLEU = 21.44 75.0/33.3/25.0/25.0 (BP = 0.607 ratio = 0.667 hyp_len = 4 ref_len = 6)");
  // Two references: n-grams of both count, the length of the nearest one, the shorter of two as near.
  const std::vector<Lines> two = {{"a b c d e"}, {"a b c"}};
  EXPECT_EQ(corpus_bleu(Lines{"a b c d"}, two).counts.reference_length, 3);
  EXPECT_NEAR(corpus_bleu(Lines{"a b c d"}, two).score, 100, 1e-10);
  // Too short for a 4-gram: zero, unless the effective order is asked for.
  EXPECT_EQ(corpus_bleu(Lines{"a b c"}, Lines{"a b c"}).score, 0.0);
  EXPECT_NEAR(corpus_bleu(Lines{"a b c"}, Lines{"a b c"}, true).score, 100, 1e-10);
}

TEST(Bleu, EqualsTheSlowImplementation) {
  std::ifstream file(qkv::testing::fixtures() + "/bleu/cases.json");
  const nlohmann::json cases = nlohmann::json::parse(file);
  ASSERT_GT(cases["tokens"].size(), 100u);
  for (const auto& c : cases["tokens"]) {
    EXPECT_EQ(bleu_segment(c[0].get<std::string>()), c[1].get<std::string>()) << c[0];
  }
  ASSERT_GT(cases["scores"].size(), 30u);
  for (const auto& c : cases["scores"]) {
    const auto outputs = c["outputs"].get<Lines>();
    const auto references = c["references"].get<std::vector<Lines>>();
    EXPECT_NEAR(corpus_bleu(outputs, references, c["effective"]).score, c["score"].get<double>(), 1e-9);
  }
}

TEST(Bleu, Errors) {
  EXPECT_EQ(testing::message_of<ConfigError>([] {
              corpus_bleu(Lines{"a", "b"}, Lines{"a"});
            }),
            "BLEU: 2 outputs but 1 references; expected one reference per line");
  EXPECT_NE(testing::message_of<ConfigError>([] { corpus_bleu(Lines{"a"}, std::vector<Lines>{}); }), "");
}

}  // namespace
}  // namespace qkv
