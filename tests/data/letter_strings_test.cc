// Random strings: distinct, never in both sets, the same for the same seed, and honest when too few exist.
#include "qkv/data/letter_strings.h"

#include <gtest/gtest.h>

#include <set>

#include "io/temp_folder.h"
#include "qkv/base/error.h"

namespace qkv {
namespace {

using testing::message_of;

TEST(LetterStrings, DistinctAndSplitByHash) {
  const LetterStringSets sets = make_letter_strings({});
  EXPECT_EQ(sets.train.size(), 10000u);
  EXPECT_EQ(sets.validation.size(), 1000u);
  std::set<LetterString> all(sets.train.begin(), sets.train.end());
  EXPECT_EQ(all.size(), 10000u);
  all.insert(sets.validation.begin(), sets.validation.end());
  EXPECT_EQ(all.size(), 11000u);
  std::set<size_t> lengths;
  for (const LetterString& s : all) {
    lengths.insert(s.size());
    for (const int64_t id : s) EXPECT_TRUE(id >= 0 && id < 4);
  }
  EXPECT_EQ(*lengths.begin(), 1u);
  EXPECT_EQ(*lengths.rbegin(), 20u);
  // The split belongs to the string: another seed draws other strings, and none changes sides.
  LetterStringOptions other;
  other.seed = 2;
  const LetterStringSets second = make_letter_strings(other);
  EXPECT_NE(second.train, sets.train);
  const std::set<LetterString> validation(sets.validation.begin(), sets.validation.end());
  for (const LetterString& s : second.train) EXPECT_FALSE(validation.contains(s));
  EXPECT_EQ(make_letter_strings({}).train, sets.train);
}

TEST(LetterStrings, SmallAlphabetsAreUsedUp) {
  LetterStringOptions options{.letters = 2, .min_length = 1, .max_length = 5, .train = 24, .validation = 6};
  const LetterStringSets sets = make_letter_strings(options);  // 62 exist
  EXPECT_EQ(sets.train.size() + sets.validation.size(), 30u);
  options.train = 100;
  const std::string message = message_of<ConfigError>([&] { make_letter_strings(options); });
  EXPECT_NE(message.find("of the 62 strings of 2 letters and lengths 1 to 5 that exist, "), std::string::npos);
  EXPECT_NE(message.find(" can train (100 wanted)"), std::string::npos);
}

// So few strings that the hash may send none to one of the sets.
TEST(LetterStrings, TinySetsEnd) {
  int made = 0, refused = 0;
  for (int64_t letters = 1; letters <= 3; ++letters) {
    for (int64_t longest = 1; longest <= 4; ++longest) {
      for (int64_t train = 1; train <= 3; ++train) {
        const LetterStringOptions o{
            .letters = letters, .min_length = 1, .max_length = longest, .train = train, .validation = 1};
        const std::string message = message_of<ConfigError>([&] {
          const LetterStringSets sets = make_letter_strings(o);
          EXPECT_EQ(sets.train.size(), static_cast<size_t>(train));
        });
        ++(message.empty() ? made : refused);
      }
    }
  }
  EXPECT_GT(made, 0);
  EXPECT_GT(refused, 0);
}

TEST(LetterStrings, EveryLength) {
  const std::vector<LetterString> strings = strings_of_lengths({.letters = 3}, 1, 4, 5);
  EXPECT_EQ(strings.size(), 3u + 5 + 5 + 5);
  EXPECT_EQ(strings.back().size(), 4u);
  EXPECT_EQ(std::set<LetterString>(strings.begin(), strings.end()).size(), strings.size());
}

TEST(Alphabet, EncodesAndDecodes) {
  const Alphabet alphabet("aéz");
  EXPECT_EQ(alphabet.encode("zéa"), (std::vector<int64_t>{2, 1, 0}));
  EXPECT_EQ(alphabet.decode(std::vector<int64_t>{1, 7, 2}), "éz");
  EXPECT_EQ(message_of<ConfigError>([&] { alphabet.encode("aéx"); }),
            "letter 3 of the input, 'x' (U+0078), is not in the alphabet 'aéz'");
  EXPECT_NE(message_of<ConfigError>([&] { alphabet.encode(""); }).find("empty"), std::string::npos);
}

TEST(Alphabet, RefusesWhatCannotBeALetter) {
  EXPECT_NE(message_of<ConfigError>([] { Alphabet(""); }).find("0 letters"), std::string::npos);
  EXPECT_NE(message_of<ConfigError>([] { Alphabet("aba"); }).find("twice"), std::string::npos);
  EXPECT_NE(message_of<ConfigError>([] { Alphabet("a b"); }).find("cannot be a letter"), std::string::npos);
  EXPECT_NE(message_of<ConfigError>([] { Alphabet("a\xff"); }).find("cannot be a letter"), std::string::npos);
}

}  // namespace
}  // namespace qkv
