// The generated German-English corpus: right endings, verb positions and alignments, and sets that share nothing.
#include "qkv/data/generated_translation.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

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

std::vector<GeneratedPair> many(int64_t n) { return generate_translation({.seed = 9, .train = n}).train; }

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
    for (const Word& word : words) all += (all.empty() ? "" : " ") + word.text;
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
  for (const GeneratedPair& pair : many(3000)) {
    const auto& words = pair.source_words;
    for (size_t i = 0; i < words.size(); ++i) {
      const std::string article =
          i == 0 ? std::string(1, static_cast<char>(words[i][0] | 32)) + words[i].substr(1) : words[i];
      size_t at = i + 1;
      while (at < words.size() && words[at][0] >= 'a' && words[at][0] <= 'z' && at < i + 3) ++at;
      const GermanNoun* noun = at < words.size() ? noun_named(words[at]) : nullptr;
      if (!noun) continue;
      const auto endings_are = [&](const std::string& ending) {
        for (size_t k = i + 1; k < at; ++k) EXPECT_TRUE(words[k].ends_with(ending)) << pair.source;
      };
      if (article == "einen" || article == "keinen") {
        EXPECT_EQ(noun->gender, Gender::masculine) << pair.source;
        endings_are("en");
      } else if (article == "eine") {
        EXPECT_EQ(noun->gender, Gender::feminine) << pair.source;
        endings_are("e");
      } else if (article == "ein") {
        EXPECT_NE(noun->gender, Gender::feminine) << pair.source;
        endings_are(noun->gender == Gender::masculine ? "er" : "es");
      } else if (article == "einem" || article == "im") {
        EXPECT_NE(noun->gender, Gender::feminine) << pair.source;
        endings_are("en");
      } else if (article == "einer") {
        EXPECT_EQ(noun->gender, Gender::feminine) << pair.source;
        endings_are("en");
      } else {
        continue;
      }
      ++checked;
    }
  }
  EXPECT_GT(checked, 2000);
}

TEST(GeneratedTranslation, AlignmentsCoverTheSentenceAndShowInversions) {
  int inverted = 0, separable = 0;
  const std::vector<GeneratedPair> pairs = many(2000);
  for (const GeneratedPair& pair : pairs) {
    std::set<int64_t> source, target;
    bool crossing = false;
    int64_t furthest = -1;
    for (const auto& [i, j] : pair.alignment) {
      ASSERT_LT(i, static_cast<int64_t>(pair.source_words.size()));
      ASSERT_LT(j, static_cast<int64_t>(pair.target_words.size()));
      source.insert(i);
      target.insert(j);
      crossing |= j < furthest;
      furthest = std::max(furthest, j);
    }
    for (size_t i = 0; i < pair.source_words.size(); ++i) {
      EXPECT_TRUE(pair.source_words[i] == "," || source.count(static_cast<int64_t>(i))) << pair.source;
    }
    for (size_t j = 0; j < pair.target_words.size(); ++j) {
      EXPECT_TRUE(pair.target_words[j] == "," || target.count(static_cast<int64_t>(j))) << pair.target;
    }
    inverted += crossing ? 1 : 0;
    for (const GermanVerb& verb : german_verbs()) {
      const std::string last = pair.source_words[pair.source_words.size() - 2];
      if (verb.prefix[0] != '\0' && last == verb.prefix) {
        ++separable;
        break;
      }
    }
  }
  EXPECT_GT(inverted, 1000);
  EXPECT_GT(separable, 60);
}

TEST(GeneratedTranslation, SetsAreDistinctAndTheSourceDecidesTheTarget) {
  const GeneratedTranslation all = generate_translation({.seed = 3, .train = 6000, .val = 400, .test = 400});
  EXPECT_EQ(all.train.size(), 6000u);
  EXPECT_EQ(all.val.size(), 400u);
  EXPECT_EQ(all.test.size(), 400u);
  std::set<std::string> seen;
  for (const auto* set : {&all.train, &all.val, &all.test}) {
    for (const GeneratedPair& pair : *set) EXPECT_TRUE(seen.insert(pair.source).second) << pair.source;
  }
  // Another seed gives other sentences, but never moves one into another set.
  std::map<std::string, std::string> meaning;
  for (const GeneratedPair& pair : all.train) meaning[pair.source] = pair.target;
  const GeneratedTranslation other = generate_translation({.seed = 4, .train = 6000, .val = 400, .test = 400});
  EXPECT_NE(other.train[0].source, all.train[0].source);
  int shared = 0;
  for (const GeneratedPair& pair : other.train) {
    const auto found = meaning.find(pair.source);
    if (found == meaning.end()) continue;
    EXPECT_EQ(found->second, pair.target) << pair.source;
    ++shared;
  }
  EXPECT_GT(shared, 0);
  for (const auto* set : {&other.val, &other.test}) {
    for (const GeneratedPair& pair : *set) EXPECT_FALSE(meaning.count(pair.source)) << pair.source;
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
