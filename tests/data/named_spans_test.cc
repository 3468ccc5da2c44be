// Names in documents: where they are, how one is hidden, and which of them looks like an answer.
#include "qkv/data/named_spans.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "qkv/base/utf8.h"
#include "qkv/data/answer_spans.h"
#include "qkv/data/generated_knowledge.h"

namespace qkv {
namespace {

std::vector<std::string> names_in(const std::string& document) {
  std::vector<std::string> found;
  const std::u32string text = utf8_to_code_points(document);
  for (const CharSpan& s : find_named_spans(document).names) {
    std::string name;
    for (int64_t i = s.begin; i < s.end; ++i) append_utf8(name, text[static_cast<size_t>(i)]);
    found.push_back(name);
  }
  return found;
}

using Names = std::vector<std::string>;

TEST(NamedSpans, RunsOfCapitalsWithoutTheTitlesOwn) {
  EXPECT_EQ(names_in("Jo Ray. Jo Ray (born 3 May 1930 in Columbus, Ohio) was a member of the House of Commons ."),
            (Names{"May", "Columbus", "Ohio", "House", "Commons"}));
  EXPECT_EQ(names_in("Jo Ray. Ray left New York City for Saint-Étienne."), (Names{"New York City", "Saint-Étienne"}));
  EXPECT_EQ(names_in("Jo Ray. Ray Hill met Élodie."), (Names{"Ray Hill", "Élodie"}));
  EXPECT_EQ(names_in("nothing here at all"), Names{});
  EXPECT_EQ(names_in(""), Names{});
}

TEST(NamedSpans, TitlesMayHaveInitials) {
  EXPECT_EQ(find_named_spans("Jo Ray. Ray was").title, 6);
  EXPECT_EQ(find_named_spans("J. R. Hill. Hill was").title, 10);
  EXPECT_EQ(find_named_spans("Wu. Wu was").title, 2);
  EXPECT_EQ(find_named_spans("no title").title, 0);
}

TEST(NamedSpans, HidesANameBehindTheTitle) {
  const std::string document = "Jo Ray. Jo Ray (born 3 May 1930 in Columbus, Ohio) was a painter of some fame .";
  const CharVocabulary v = CharVocabulary::of_text(document);
  const std::vector<int64_t> ids = v.encode(document, "d");
  const NamedSpans spans = find_named_spans(document);
  std::vector<std::string> hidden;
  size_t shortest = 1000, longest = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    const std::string text = v.decode(corrupt_named_span(ids, spans, {.block = 128, .probabilities = {}}, rng));
    ASSERT_EQ(text.rfind("Jo Ray. ", 0), 0u) << text;
    const size_t first = text.find("⁇"), second = text.find("⁇", first + 1), third = text.find("⁇", second + 1);
    ASSERT_NE(third, std::string::npos) << text;
    EXPECT_EQ(third + std::string("⁇").size(), text.size()) << text;
    const size_t mark = std::string("⁇").size();
    const std::string name = text.substr(second + mark, third - second - mark);
    // Filling the gap gives a piece of the document.
    const std::string filled = text.substr(8, first - 8) + name + text.substr(first + mark, second - first - mark);
    EXPECT_NE(document.find(filled), std::string::npos) << text;
    hidden.push_back(name);
    shortest = std::min(shortest, filled.size());
    longest = std::max(longest, filled.size());
  }
  for (const char* name : {"May", "Columbus", "Ohio"}) {
    EXPECT_GT(std::count(hidden.begin(), hidden.end(), name), 40) << name;
  }
  EXPECT_EQ(shortest, 3u);  // "May" alone
  EXPECT_GT(longest, 60u);
}

TEST(NamedSpans, KeepsWithinTheBlockAndFollowsProbabilities) {
  std::string document = "Jo Ray. ";
  for (int i = 0; i < 20; ++i) document += "word Name" + std::string(1, static_cast<char>('a' + i)) + " ";
  const CharVocabulary v = CharVocabulary::of_text(document);
  const NamedSpans spans = find_named_spans(document);
  ASSERT_EQ(spans.names.size(), 20u);
  std::vector<double> only(20, 0.0);
  only[7] = 1;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Rng rng(seed);
    const auto sequence = corrupt_named_span(v.encode(document, "d"), spans, {.block = 40, .probabilities = only}, rng);
    EXPECT_LE(sequence.size(), 40u * 7 / 8 + 3);
    EXPECT_NE(v.decode(sequence).find("⁇Nameh⁇"), std::string::npos);
  }
  Rng rng(1);
  EXPECT_THROW(corrupt_named_span(v.encode("word", "d"), {}, {}, rng), ConfigError);
}

TEST(AnswerSpans, LearnsWhichNameIsAskedFor) {
  const GeneratedKnowledge g = generate_knowledge({.people = 120, .places = 12});
  std::vector<NamedSpans> names;
  for (const std::string& d : g.documents) names.push_back(find_named_spans(d));
  const AnswerSpans likely(g.documents, names, g.train);
  EXPECT_GT(likely.learnt_from(), 70);
  int asked = 0, right = 0;
  for (size_t i = 0; i < g.documents.size(); ++i) {
    const auto fact = std::find_if(g.dev.begin(), g.dev.end(), [&](const Fact& f) {
      return g.documents[i].rfind(name_in_question(f.question) + ".", 0) == 0;
    });
    if (fact == g.dev.end()) continue;
    const std::vector<double> p = likely.probabilities(g.documents[i], names[i]);
    ASSERT_EQ(p.size(), names[i].names.size());
    double total = 0;
    for (const double x : p) total += x;
    EXPECT_NEAR(total, 1, 1e-9);
    const CharSpan best = names[i].names[static_cast<size_t>(std::max_element(p.begin(), p.end()) - p.begin())];
    right += g.documents[i].substr(static_cast<size_t>(best.begin), static_cast<size_t>(best.end - best.begin)) ==
             fact->place;
    ++asked;
  }
  ASSERT_GT(asked, 90);
  EXPECT_GT(right, asked * 9 / 10);
  EXPECT_TRUE(likely.probabilities("nobody", {}).empty());
}

}  // namespace
}  // namespace qkv
