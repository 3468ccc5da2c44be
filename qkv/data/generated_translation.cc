// A German-English corpus from a small grammar, so that translation and its word order can be studied without data.
#include "qkv/data/generated_translation.h"

#include <algorithm>
#include <unordered_set>

#include "qkv/data/german_grammar.h"

namespace qkv {
namespace {

using namespace grammar;

struct Sentence {
  Words german, english;
  Ideas ideas;

  void both(const std::string& de, const std::string& en, int idea) {
    say(german, de, {idea});
    say(english, en, {idea});
  }
  static void comma(Words& out) { out.push_back({",", {}}); }
  void end(const char* mark) {
    const int idea = ideas.take();
    both(mark, mark, idea);
  }
};

// Der Mann sucht den Ball. Heute sucht der Mann den Ball.
void main_clause(Sentence& s, const Clause& clause, Rng& rng) {
  if (clause.time && chance(rng, 0.5)) {
    s.both(clause.time->german, clause.time->english, clause.time_idea);
    clause.german(s.german, Order::inverted, {.time = true});
    clause.english(s.english, {.time = true});
  } else {
    clause.german(s.german, Order::subject_first, {});
    clause.english(s.english, {});
  }
}

void plain(Sentence& s, Rng& rng) {
  main_clause(s, make_clause(rng, s.ideas, false), rng);
  s.end(".");
}

void question(Sentence& s, Rng& rng) {
  const Clause clause = make_clause(rng, s.ideas, false);
  clause.german(s.german, Order::inverted, {});
  clause.english_question(s.english);
  s.end("?");
}

// Die Frau glaubt, dass der Mann den Ball sucht.
void that_clause(Sentence& s, Rng& rng) {
  const NounPhrase believer = make_subject(rng, s.ideas, kPerson);
  const Clause inner = make_clause(rng, s.ideas, false);
  const GermanBelief& belief = pick(rng, german_beliefs());
  believer.german(s.german, Case::nominative);
  believer.english(s.english);
  const char* verb = believer.person == Person::first ? belief.first : believer.plural ? belief.plural : belief.third;
  s.both(verb, believer.takes_base_form() ? belief.english : belief.english_third, s.ideas.take());
  Sentence::comma(s.german);
  s.both("dass", "that", s.ideas.take());
  inner.german(s.german, Order::last, {});
  inner.english(s.english, {});
  s.end(".");
}

// Der Mann lacht, weil das Kind singt. Wenn das Kind singt, lacht der Mann.
void subordinate(Sentence& s, Rng& rng) {
  const Clause outer = make_clause(rng, s.ideas, false), inner = make_clause(rng, s.ideas, false);
  const WordPair& conjunction = pick(rng, german_conjunctions());
  const int idea = s.ideas.take();
  const auto say_inner = [&] {
    s.both(conjunction.german, conjunction.english, idea);
    inner.german(s.german, Order::last, {});
    inner.english(s.english, {});
  };
  if (chance(rng, 0.4)) {
    say_inner();
    Sentence::comma(s.german);
    Sentence::comma(s.english);
    outer.german(s.german, Order::inverted, {});
    outer.english(s.english, {});
  } else {
    main_clause(s, outer, rng);
    Sentence::comma(s.german);
    say_inner();
  }
  s.end(".");
}

// Der Ball, den der Mann sucht, ist rot. Der Mann, der den Ball sucht, ist alt.
void relative(Sentence& s, Rng& rng) {
  Clause clause = make_clause(rng, s.ideas, true);
  // "Die Frau, die das Kind sieht" is read as the woman who sees; the other reading needs a sign that it is meant.
  const bool readable = clause.object.noun && (clause.object.shows_case() || clause.subject.shows_case() ||
                                               clause.object.plural != clause.subject.plural);
  const bool by_object = readable && chance(rng, 0.5);
  NounPhrase& head = by_object ? clause.object : clause.subject;
  if (head.article == Article::none_of) head.article = Article::definite;
  const GermanAdjective* adjective = nullptr;
  do {
    adjective = &pick(rng, german_adjectives());
  } while ((adjective->kinds & head.noun->kind) == 0);
  head.german(s.german, Case::nominative);
  head.english(s.english);
  Sentence::comma(s.german);
  const bool person = (head.noun->kind & kPerson) != 0;
  s.both(head.relative(by_object ? Case::accusative : Case::nominative), person && !by_object ? "who" : "that",
         s.ideas.take());
  clause.german(s.german, Order::last, {.subject = !by_object, .object = by_object});
  clause.english(s.english, {.subject = !by_object, .object = by_object});
  Sentence::comma(s.german);
  s.both(head.plural ? "sind" : "ist", head.plural ? "are" : "is", s.ideas.take());
  s.both(adjective->base, adjective->english, s.ideas.take());
  s.end(".");
}

bool is_mark(const std::string& word) { return word == "." || word == "," || word == "?"; }

std::string upper_first(const std::string& word) {
  if (word.empty()) return word;
  std::string out = word;
  if (out[0] >= 'a' && out[0] <= 'z') out[0] = static_cast<char>(out[0] - 32);
  return out;
}

std::string text_of(Words& words, std::vector<std::string>& plain_words) {
  words[0].text = upper_first(words[0].text);
  std::string text;
  for (const Word& word : words) {
    if (!text.empty() && !is_mark(word.text)) text.push_back(' ');
    text += word.text;
    plain_words.push_back(word.text);
  }
  return text;
}

bool share_idea(const Word& a, const Word& b) {
  return std::any_of(a.ideas.begin(), a.ideas.end(),
                     [&](int idea) { return std::find(b.ideas.begin(), b.ideas.end(), idea) != b.ideas.end(); });
}

uint64_t hash_of(const std::string& text) {
  uint64_t hash = 0;
  for (const char c : text) hash = mix64(hash ^ static_cast<uint8_t>(c));
  return hash;
}

ParallelSet plain_set(std::string name, std::vector<GeneratedPair>& pairs) {
  ParallelSet set{.name = std::move(name), .source = {}, .target = {}};
  for (GeneratedPair& pair : pairs) {
    set.source.push_back(std::move(pair.source));
    set.target.push_back(std::move(pair.target));
  }
  return set;
}

}  // namespace

GeneratedPair generate_pair(Rng& rng) {
  Sentence s;
  const double kind = rng.uniform();
  if (kind < 0.4) {
    plain(s, rng);
  } else if (kind < 0.5) {
    question(s, rng);
  } else if (kind < 0.65) {
    that_clause(s, rng);
  } else if (kind < 0.85) {
    subordinate(s, rng);
  } else {
    relative(s, rng);
  }
  GeneratedPair pair;
  pair.source = text_of(s.german, pair.source_words);
  pair.target = text_of(s.english, pair.target_words);
  for (size_t i = 0; i < s.german.size(); ++i) {
    for (size_t j = 0; j < s.english.size(); ++j) {
      if (share_idea(s.german[i], s.english[j])) {
        pair.alignment.emplace_back(static_cast<int64_t>(i), static_cast<int64_t>(j));
      }
    }
  }
  return pair;
}

GeneratedTranslation generate_translation(const GeneratedTranslationOptions& options) {
  GeneratedTranslation out;
  std::unordered_set<std::string> seen;
  Rng rng = Rng(options.seed).fork(0x6465656E);
  const auto wants = [](const std::vector<GeneratedPair>& set, int64_t size) {
    return static_cast<int64_t>(set.size()) < size;
  };
  while (wants(out.train, options.train) || wants(out.val, options.val) || wants(out.test, options.test)) {
    GeneratedPair pair = generate_pair(rng);
    const uint64_t slot = hash_of(pair.source) % 10;
    std::vector<GeneratedPair>& set = slot == 0 ? out.val : slot == 1 ? out.test : out.train;
    const int64_t size = slot == 0 ? options.val : slot == 1 ? options.test : options.train;
    if (wants(set, size) && seen.insert(pair.source).second) set.push_back(std::move(pair));
  }
  return out;
}

ParallelCorpus generate_parallel_corpus(const GeneratedTranslationOptions& options) {
  GeneratedTranslation pairs = generate_translation(options);
  ParallelCorpus corpus;
  corpus.train = plain_set("train", pairs.train);
  corpus.val = plain_set("val", pairs.val);
  corpus.tests.push_back(plain_set("test", pairs.test));
  return corpus;
}

}  // namespace qkv
