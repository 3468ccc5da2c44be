// Alignments and the choice of examples, on weights made by hand.
#include "qkv/tasks/translate/alignment.h"

#include <gtest/gtest.h>

#include "qkv/tasks/translate/examples.h"

namespace qkv {
namespace {

TEST(Alignment, WordsOfPiecesCountWhiteSpace) {
  const std::vector<std::string> lines(20, "Der Hund, (gross) bellt laut. Und wie!");
  const std::string text = "Der Hund, (gross) bellt.";
  for (const char* kind : {"word", "char", "unigram", "bpe"}) {
    const auto tokenizer = train_tokenizer(lines, {.kind = kind, .vocabulary = 40});
    const std::vector<int64_t> ids = tokenizer->encode(text);
    const std::vector<int64_t> words = word_of_piece(*tokenizer, ids);
    ASSERT_EQ(words.size(), ids.size()) << kind;
    EXPECT_EQ(words.front(), 0) << kind;
    EXPECT_EQ(words.back(), 3) << kind;
    for (size_t i = 1; i < words.size(); ++i) EXPECT_LE(words[i] - words[i - 1], 1) << kind;
  }
}

TEST(Alignment, TextIsSortedAndHasEachPairOnce) {
  // Three target pieces of two words look at source pieces 2, 0 and 0; the last row is the end mark.
  const AlignmentWeights weights{{.1, .2, .7}, {.8, .1, .1}, {.6, .3, .1}, {0, 0, 1}};
  EXPECT_EQ(alignment_text(weights, {0, 0, 1}, {0, 1, 1}), "0-1 1-0");
  EXPECT_EQ(alignment_text({}, {}, {}), "");
}

TEST(Alignment, TraceHandsOutItsRows) {
  const AttentionTrace trace = alignment_trace({{.25, .75}, {1, 0}, {.5, .5}});
  EXPECT_EQ(trace.Lq, 3);
  EXPECT_EQ(trace.Lk, 2);
  EXPECT_EQ(trace.scores({.row_begin = 1, .row_end = 3}).to_vector(), (std::vector<float>{1, 0, .5F, .5F}));
}

TEST(Alignment, LookingBackIsMeasured) {
  const LookedAt diagonal = look_at({{1, 0, 0}, {0, 1, 0}, {0, 0, 1}});
  EXPECT_EQ(diagonal.backwards, 0);
  EXPECT_EQ(diagonal.sureness, 1);
  const LookedAt reversed = look_at({{0, 0, 1}, {0, .5, .5}, {1, 0, 0}});
  EXPECT_DOUBLE_EQ(reversed.backwards, 2.0 / 3);
  EXPECT_EQ(reversed.jump, 1);
  EXPECT_EQ(look_at({}).backwards, 0);
}

TEST(Alignment, EveryWishIsMet) {
  std::vector<LookedAt> all;
  for (int64_t i = 0; i < 12; ++i)
    all.push_back({.index = i, .tokens = 10, .backwards = 1, .sureness = .5, .bleu = 50});
  all[3].backwards = 0;
  all[5].backwards = 4;
  all[6].backwards = 9;  // goes in circles
  all[6].ended = false;
  all[7].tokens = 40;
  all[2].bleu = 0;
  all[9].tokens = 3;  // too short to count as nearly in order
  all[9].backwards = 0;
  const std::vector<ChosenExample> chosen = choose_examples(all, 20);
  ASSERT_EQ(chosen.size(), 12u);
  EXPECT_EQ(chosen[0].index, 3);
  EXPECT_EQ(chosen[1].index, 5);
  EXPECT_EQ(chosen[2].index, 7);
  EXPECT_EQ(chosen[3].index, 2);
  EXPECT_EQ(chosen[8].index, 9);
  EXPECT_EQ(chosen[8].why, "the shortest");
  EXPECT_EQ(choose_examples(all, 2).size(), 2u);
  EXPECT_TRUE(choose_examples({}, 3).empty());
}

}  // namespace
}  // namespace qkv
