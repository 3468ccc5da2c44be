// The generated German-English corpus: right endings and verb positions, and sets that share nothing.
#include "qkv/data/generated_translation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "qkv/base/utf8.h"
#include "qkv/data/german_grammar.h"

namespace qkv {
namespace {

using namespace grammar;

const GermanNoun* noun_named(const std::string& word) {
  for (const GermanNoun& noun : german_nouns()) {
    for (const char* form : {noun.singular, noun.plural, noun.oblique}) {
      if (form && word == form) return &noun;
    }
  }
  for (const GermanPlace& place : german_places()) {
    if (word == place.noun.singular) return &place.noun;
  }
  return nullptr;
}

std::vector<std::string> many(int64_t n) { return generate_parallel_corpus({.seed = 9, .train = n}).train.source; }

/// Punctuation is a separate word.
std::vector<std::string> words_of(const std::string& sentence) {
  std::string apart;
  for (const char c : sentence) apart += c == ',' || c == '.' || c == '?' ? std::string(" ") + c : std::string(1, c);
  const std::vector<std::string_view> words = split_words(apart);
  return {words.begin(), words.end()};
}

TEST(GermanGrammar, AdjectiveEndings) {
  const GermanAdjective old{"alt", "alt", "old", kAnything};
  const auto forms = [&](Article article, Gender gender, bool plural) {
    std::string all;
    for (const Case c : {Case::nominative, Case::accusative, Case::dative}) {
      all += inflect(old, article, gender, plural, c) + " ";
    }
    return all;
  };
  EXPECT_EQ(forms(Article::definite, Gender::masculine, false), "alte alten alten ");
  EXPECT_EQ(forms(Article::definite, Gender::feminine, false), "alte alte alten ");
  EXPECT_EQ(forms(Article::definite, Gender::neuter, false), "alte alte alten ");
  EXPECT_EQ(forms(Article::definite, Gender::neuter, true), "alten alten alten ");
  EXPECT_EQ(forms(Article::indefinite, Gender::masculine, false), "alter alten alten ");
  EXPECT_EQ(forms(Article::indefinite, Gender::feminine, false), "alte alte alten ");
  EXPECT_EQ(forms(Article::indefinite, Gender::neuter, false), "altes altes alten ");
  EXPECT_EQ(forms(Article::none_of, Gender::feminine, true), "alten alten alten ");
  EXPECT_EQ(forms(Article::number, Gender::masculine, true), "alte alte alten ");
}

TEST(GermanGrammar, Numbers) {
  EXPECT_EQ(german_number(2) + " " + english_number(2), "zwei two");
  EXPECT_EQ(german_number(17) + " " + english_number(17), "siebzehn seventeen");
  EXPECT_EQ(german_number(21) + " " + english_number(21), "einundzwanzig twenty-one");
  EXPECT_EQ(german_number(60) + " " + english_number(60), "sechzig sixty");
  EXPECT_EQ(german_number(99) + " " + english_number(99), "neunundneunzig ninety-nine");
}

// One clause said in every way, against what a speaker would say.
TEST(GermanGrammar, ClauseOrders) {
  const GermanNoun man{"Mann", "Männer", Gender::masculine, "man", "men", kPerson};
  const GermanNoun door{"Tür", "Türen", Gender::feminine, "door", "doors", kOpenable};
  const GermanVerb open{"machen", "macht", "gemacht", "auf", "open", "opens", "opened", "", kPerson, kOpenable};
  const GermanModal want{"will", "wollen", "want", "wants", "to"};
  const WordPair today{"heute", "today"};
  Clause clause;
  clause.verb = &open;
  clause.modal = &want;
  clause.subject.noun = &man;
  clause.object.noun = &door;
  clause.object.article = Article::indefinite;
  clause.has_object = true;
  clause.time = &today;
  const auto text = [](const Words& words) {
    std::string all;
    for (const std::string& word : words) all += (all.empty() ? "" : " ") + word;
    return all;
  };
  const auto german = [&](Order order) {
    Words words;
    clause.german(words, order, {});
    return text(words);
  };
  const auto english = [&](bool question) {
    Words words;
    if (question) {
      clause.english_question(words);
    } else {
      clause.english(words, {});
    }
    return text(words);
  };
  EXPECT_EQ(german(Order::subject_first), "der Mann macht heute eine Tür auf");
  EXPECT_EQ(german(Order::inverted), "macht der Mann heute eine Tür auf");
  EXPECT_EQ(german(Order::last), "der Mann heute eine Tür aufmacht");
  EXPECT_EQ(english(false), "the man opens a door today");
  EXPECT_EQ(english(true), "does the man open a door today");
  clause.tense = Tense::perfect;
  EXPECT_EQ(german(Order::subject_first), "der Mann hat heute eine Tür aufgemacht");
  EXPECT_EQ(german(Order::last), "der Mann heute eine Tür aufgemacht hat");
  EXPECT_EQ(english(true), "has the man opened a door today");
  clause.tense = Tense::modal;
  clause.subject.plural = true;
  EXPECT_EQ(german(Order::inverted), "wollen die Männer heute eine Tür aufmachen");
  EXPECT_EQ(german(Order::last), "die Männer heute eine Tür aufmachen wollen");
  EXPECT_EQ(english(false), "the men want to open a door today");
  EXPECT_EQ(english(true), "do the men want to open a door today");
}

// Read back without the grammar: what an article says about gender must fit the noun that follows.
TEST(GeneratedTranslation, ArticlesAndEndingsFitTheNouns) {
  int checked = 0;
  for (const std::string& sentence : many(3000)) {
    const std::vector<std::string> words = words_of(sentence);
    for (size_t i = 0; i < words.size(); ++i) {
      const std::string article =
          i == 0 ? std::string(1, static_cast<char>(words[i][0] | 32)) + words[i].substr(1) : words[i];
      size_t at = i + 1;
      while (at < words.size() && words[at][0] >= 'a' && words[at][0] <= 'z' && at < i + 3) ++at;
      const GermanNoun* noun = at < words.size() ? noun_named(words[at]) : nullptr;
      if (!noun) continue;
      const auto endings_are = [&](const std::string& ending) {
        for (size_t k = i + 1; k < at; ++k) EXPECT_TRUE(words[k].ends_with(ending)) << sentence;
      };
      if (article == "einen" || article == "keinen") {
        EXPECT_EQ(noun->gender, Gender::masculine) << sentence;
        endings_are("en");
      } else if (article == "eine") {
        EXPECT_EQ(noun->gender, Gender::feminine) << sentence;
        endings_are("e");
      } else if (article == "ein") {
        EXPECT_NE(noun->gender, Gender::feminine) << sentence;
        endings_are(noun->gender == Gender::masculine ? "er" : "es");
      } else if (article == "einem" || article == "im") {
        EXPECT_NE(noun->gender, Gender::feminine) << sentence;
        endings_are("en");
      } else if (article == "einer") {
        EXPECT_EQ(noun->gender, Gender::feminine) << sentence;
        endings_are("en");
      } else {
        continue;
      }
      ++checked;
    }
  }
  EXPECT_GT(checked, 2000);
}

TEST(GeneratedTranslation, SeparablePrefixesAndVerbsAtTheEnd) {
  int last = 0, separable = 0;
  for (const std::string& sentence : many(2000)) {
    const std::vector<std::string> words = words_of(sentence);
    const std::string end = words[words.size() - 2];
    const auto verbs = german_verbs();
    separable +=
        std::any_of(verbs.begin(), verbs.end(), [&](const GermanVerb& v) { return *v.prefix && end == v.prefix; });
    const bool clause = sentence.find(", dass ") != std::string::npos || sentence.find(", weil ") != std::string::npos;
    last += clause && std::any_of(verbs.begin(), verbs.end(),
                                  [&](const GermanVerb& v) { return end == std::string(v.prefix) + v.third; });
  }
  EXPECT_GT(last, 100);
  EXPECT_GT(separable, 60);
}

TEST(GeneratedTranslation, SetsAreDistinctAndTheSourceDecidesTheTarget) {
  const ParallelCorpus all = generate_parallel_corpus({.seed = 3, .train = 6000, .val = 400, .test = 400});
  EXPECT_EQ(all.train.size(), 6000);
  EXPECT_EQ(all.val.size(), 400);
  EXPECT_EQ(all.tests[0].size(), 400);
  std::set<std::string> seen;
  for (const auto* set : {&all.train, &all.val, &all.tests[0]}) {
    for (const std::string& source : set->source) EXPECT_TRUE(seen.insert(source).second) << source;
  }
  // Another seed gives other sentences, but never moves one into another set.
  std::map<std::string, std::string> meaning;
  for (size_t i = 0; i < 6000; ++i) meaning[all.train.source[i]] = all.train.target[i];
  const ParallelCorpus other = generate_parallel_corpus({.seed = 4, .train = 6000, .val = 400, .test = 400});
  EXPECT_NE(other.train.source[0], all.train.source[0]);
  int shared = 0;
  for (size_t i = 0; i < 6000; ++i) {
    const auto found = meaning.find(other.train.source[i]);
    if (found == meaning.end()) continue;
    EXPECT_EQ(found->second, other.train.target[i]) << other.train.source[i];
    ++shared;
  }
  EXPECT_GT(shared, 0);
  for (const auto* set : {&other.val, &other.tests[0]}) {
    for (const std::string& source : set->source) EXPECT_FALSE(meaning.count(source)) << source;
  }
}

TEST(GeneratedTranslation, DeterministicPlainCorpus) {
  const ParallelCorpus a = generate_parallel_corpus({.seed = 5, .train = 300, .val = 20, .test = 20});
  const ParallelCorpus b = generate_parallel_corpus({.seed = 5, .train = 300, .val = 20, .test = 20});
  EXPECT_EQ(a.train.source, b.train.source);
  EXPECT_EQ(a.train.target, b.train.target);
  ASSERT_EQ(a.tests.size(), 1u);
  EXPECT_EQ(a.tests[0].size(), 20);
  for (const std::string& line : a.train.source) {
    EXPECT_TRUE(line.ends_with(".") || line.ends_with("?"));
    EXPECT_EQ(line.find(" ,"), std::string::npos);
    EXPECT_EQ(line.find("  "), std::string::npos);
  }
}

}  // namespace
}  // namespace qkv
