// A German-English corpus from a small grammar, so that translation and its word order can be studied without data.
#include "qkv/data/generated_translation.h"

#include <unordered_set>

#include "qkv/data/german_grammar.h"

namespace qkv {
namespace {

using namespace grammar;

struct Sentence {
  Words german, english;

  void both(const std::string& de, const std::string& en) {
    say(german, de);
    say(english, en);
  }
  void end(const char* mark) { both(mark, mark); }
};

// Der Mann sucht den Ball. Heute sucht der Mann den Ball.
void main_clause(Sentence& s, const Clause& clause, Rng& rng) {
  if (clause.time && chance(rng, 0.5)) {
    s.both(clause.time->german, clause.time->english);
    clause.german(s.german, Order::inverted, {.time = true});
    clause.english(s.english, {.time = true});
  } else {
    clause.german(s.german, Order::subject_first, {});
    clause.english(s.english, {});
  }
}

void plain(Sentence& s, Rng& rng) {
  main_clause(s, make_clause(rng, false), rng);
  s.end(".");
}

void question(Sentence& s, Rng& rng) {
  const Clause clause = make_clause(rng, false);
  clause.german(s.german, Order::inverted, {});
  clause.english_question(s.english);
  s.end("?");
}

// Die Frau glaubt, dass der Mann den Ball sucht.
void that_clause(Sentence& s, Rng& rng) {
  const NounPhrase believer = make_subject(rng, kPerson);
  const Clause inner = make_clause(rng, false);
  const GermanBelief& belief = pick(rng, german_beliefs());
  believer.german(s.german, Case::nominative);
  believer.english(s.english);
  const char* verb = believer.person == Person::first ? belief.first : believer.plural ? belief.plural : belief.third;
  s.both(verb, believer.takes_base_form() ? belief.english : belief.english_third);
  s.german.emplace_back(",");
  s.both("dass", "that");
  inner.german(s.german, Order::last, {});
  inner.english(s.english, {});
  s.end(".");
}

// Der Mann lacht, weil das Kind singt. Wenn das Kind singt, lacht der Mann.
void subordinate(Sentence& s, Rng& rng) {
  const Clause outer = make_clause(rng, false), inner = make_clause(rng, false);
  const WordPair& conjunction = pick(rng, german_conjunctions());
  const auto say_inner = [&] {
    s.both(conjunction.german, conjunction.english);
    inner.german(s.german, Order::last, {});
    inner.english(s.english, {});
  };
  if (chance(rng, 0.4)) {
    say_inner();
    s.german.emplace_back(",");
    s.english.emplace_back(",");
    outer.german(s.german, Order::inverted, {});
    outer.english(s.english, {});
  } else {
    main_clause(s, outer, rng);
    s.german.emplace_back(",");
    say_inner();
  }
  s.end(".");
}

// Der Ball, den der Mann sucht, ist rot. Der Mann, der den Ball sucht, ist alt.
void relative(Sentence& s, Rng& rng) {
  Clause clause = make_clause(rng, true);
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
  s.german.emplace_back(",");
  const bool person = (head.noun->kind & kPerson) != 0;
  s.both(head.relative(by_object ? Case::accusative : Case::nominative), person && !by_object ? "who" : "that");
  clause.german(s.german, Order::last, {.subject = !by_object, .object = by_object});
  clause.english(s.english, {.subject = !by_object, .object = by_object});
  s.german.emplace_back(",");
  s.both(head.plural ? "sind" : "ist", head.plural ? "are" : "is");
  s.both(adjective->base, adjective->english);
  s.end(".");
}

bool is_mark(const std::string& word) { return word == "." || word == "," || word == "?"; }

std::string text_of(Words& words) {
  char& first = words[0][0];
  if (first >= 'a' && first <= 'z') first = static_cast<char>(first - 'a' + 'A');
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty() && !is_mark(word)) text.push_back(' ');
    text += word;
  }
  return text;
}

uint64_t hash_of(const std::string& text) {
  uint64_t hash = 0;
  for (const char c : text) hash = mix64(hash ^ static_cast<uint8_t>(c));
  return hash;
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
  return {text_of(s.german), text_of(s.english)};
}

ParallelCorpus generate_parallel_corpus(const GeneratedTranslationOptions& options) {
  ParallelCorpus corpus;
  corpus.train.name = "train";
  corpus.val.name = "val";
  ParallelSet& test = corpus.tests.emplace_back(ParallelSet{.name = "test"});
  std::unordered_set<std::string> seen;
  Rng rng = Rng(options.seed).fork(0x6465656E);
  while (corpus.train.size() < options.train || corpus.val.size() < options.val || test.size() < options.test) {
    GeneratedPair pair = generate_pair(rng);
    const uint64_t slot = hash_of(pair.source) % 10;
    ParallelSet& set = slot == 0 ? corpus.val : slot == 1 ? test : corpus.train;
    const int64_t size = slot == 0 ? options.val : slot == 1 ? options.test : options.train;
    if (set.size() >= size || !seen.insert(pair.source).second) continue;
    set.source.push_back(std::move(pair.source));
    set.target.push_back(std::move(pair.target));
  }
  return corpus;
}

}  // namespace qkv
