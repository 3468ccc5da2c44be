// The grammar's parts: noun phrases and clauses that can say themselves in German and in English.
#include "qkv/data/german_grammar.h"

#include <cstring>
#include <string_view>

#include "qkv/base/utf8.h"

namespace qkv::grammar {
namespace {

// Columns: masculine, feminine, neuter, plural.
int column(Gender gender, bool plural) { return plural ? 3 : static_cast<int>(gender); }
constexpr const char* kDefinite[3][4] = {
    {"der", "die", "das", "die"}, {"den", "die", "das", "die"}, {"dem", "der", "dem", "den"}};
constexpr const char* kEinEnding[3][4] = {{"", "e", "", "e"}, {"en", "e", "", "e"}, {"em", "er", "em", "en"}};
constexpr const char* kWeak[3][4] = {{"e", "e", "e", "en"}, {"en", "e", "e", "en"}, {"en", "en", "en", "en"}};
constexpr const char* kMixed[3][4] = {{"er", "e", "es", "en"}, {"en", "e", "es", "en"}, {"en", "en", "en", "en"}};
constexpr const char* kStrongPlural[3] = {"e", "e", "en"};

constexpr WordPair kPronouns[] = {{"ich", "I"}, {"er", "he"}, {"sie", "she"}, {"wir", "we"}, {"sie", "they"}};

std::string noun_form(const GermanNoun& noun, bool plural, Case c) {
  if (!plural) return c != Case::nominative && noun.oblique ? noun.oblique : noun.singular;
  std::string form = noun.plural;
  if (c == Case::dative && form.back() != 'n' && form.back() != 's') form += 'n';
  return form;
}

std::string article_form(const NounPhrase& np, Case c) {
  const auto row = static_cast<size_t>(c);
  const int col = column(np.noun->gender, np.plural);
  switch (np.article) {
    case Article::definite:
      return kDefinite[row][col];
    case Article::indefinite:
      return std::string("ein") + kEinEnding[row][col];
    case Article::none_of:
      return std::string("kein") + kEinEnding[row][col];
    case Article::number:
      break;
  }
  return german_number(np.count);
}

// wir and plural subjects take the infinitive's form, ich that without -n, the rest the third person.
std::string finite(const NounPhrase& subject, const char* infinitive, const char* third) {
  if (subject.plural) return infinitive;
  if (subject.person == Person::third) return third;
  return std::string(infinitive, std::strlen(infinitive) - 1);
}

const char* auxiliary(const NounPhrase& subject, bool sein) {
  if (subject.plural) return sein ? "sind" : "haben";
  if (subject.person == Person::first) return sein ? "bin" : "habe";
  return sein ? "ist" : "hat";
}

}  // namespace

void say(Words& out, std::string_view text) {
  for (const std::string_view word : split_words(text)) out.emplace_back(word);
}

std::string inflect(const GermanAdjective& adjective, Article article, Gender gender, bool plural, Case c) {
  const auto row = static_cast<size_t>(c);
  const int col = column(gender, plural);
  if (article == Article::number) return std::string(adjective.stem) + kStrongPlural[row];
  return std::string(adjective.stem) + (article == Article::definite ? kWeak : kMixed)[row][col];
}

void NounPhrase::german(Words& out, Case c) const {
  if (pronoun) return say(out, pronoun->german);
  say(out, article_form(*this, c));
  for (const GermanAdjective* a : adjectives) say(out, inflect(*a, article, noun->gender, plural, c));
  say(out, noun_form(*noun, plural, c));
}

void NounPhrase::english(Words& out) const {
  if (pronoun) return say(out, pronoun->english);
  const std::string head = plural ? noun->english_plural : noun->english;
  const std::string next = adjectives.empty() ? head : adjectives[0]->english;
  switch (article) {
    case Article::definite:
      say(out, "the");
      break;
    case Article::indefinite:
      say(out, std::strchr("aeiou", next[0]) ? "an" : "a");
      break;
    case Article::none_of:
      say(out, "no");
      break;
    case Article::number:
      say(out, english_number(count));
      break;
  }
  for (const GermanAdjective* a : adjectives) say(out, a->english);
  say(out, head);
}

std::string NounPhrase::relative(Case c) const {
  return kDefinite[static_cast<size_t>(c)][column(noun->gender, plural)];
}

void Clause::german(Words& out, Order order, Omit omit) const {
  std::string finite_verb, end;
  const std::string prefix = verb->prefix;
  const std::string present = finite(subject, verb->infinitive, verb->third);
  if (tense == Tense::present) {
    finite_verb = order == Order::last ? prefix + present : present;
    if (order != Order::last) end = prefix;
  } else if (tense == Tense::perfect) {
    finite_verb = auxiliary(subject, verb->with_sein);
    end = prefix + verb->participle;
  } else {
    finite_verb = subject.plural ? modal->plural : modal->singular;
    end = prefix + verb->infinitive;
  }

  const auto say_finite = [&] { say(out, finite_verb); };
  if (order == Order::inverted) say_finite();
  if (!omit.subject) subject.german(out, Case::nominative);
  if (order == Order::subject_first) say_finite();
  if (time && !omit.time) say(out, time->german);
  if (has_object && !omit.object) object.german(out, Case::accusative);
  if (place) {
    Words noun;
    place_noun.german(noun, Case::dative);
    if (std::string_view(place->preposition) == "in" && noun[0] == "dem") {
      say(out, "im");
      out.insert(out.end(), noun.begin() + 1, noun.end());
    } else {
      say(out, place->preposition);
      out.insert(out.end(), noun.begin(), noun.end());
    }
  }
  say(out, end);
  if (order == Order::last) say_finite();
}

void Clause::english(Words& out, Omit omit) const {
  if (!omit.subject) subject.english(out);
  const bool base = subject.takes_base_form();
  if (tense == Tense::present) {
    say(out, base ? verb->english : verb->english_third);
  } else if (tense == Tense::perfect) {
    say(out, base ? "have" : "has");
    say(out, verb->english_participle);
  } else {
    say(out, base ? modal->english : modal->english_third);
    say(out, modal->particle);
    say(out, verb->english);
  }
  // A particle that is a preposition comes before the object, and so does every other one: simple and right.
  say(out, verb->particle);
  if (has_object && !omit.object) object.english(out);
  if (place) {
    say(out, place->english);
    place_noun.english(out);
  }
  if (time && !omit.time) say(out, time->english);
}

void Clause::english_question(Words& out) const {
  Words plain;
  english(plain, {});
  Words subject_words;
  subject.english(subject_words);
  const size_t at = subject_words.size();
  const bool base = subject.takes_base_form();
  const bool wants = tense == Tense::modal && modal->particle[0] != '\0';
  if (tense == Tense::present || wants) {
    say(out, base ? "do" : "does");
    out.insert(out.end(), subject_words.begin(), subject_words.end());
    say(out, wants ? modal->english : verb->english);
  } else {
    out.push_back(plain[at]);
    out.insert(out.end(), subject_words.begin(), subject_words.end());
  }
  out.insert(out.end(), plain.begin() + static_cast<std::ptrdiff_t>(at) + 1, plain.end());
}

NounPhrase make_noun_phrase(Rng& rng, unsigned kinds, bool negatable) {
  NounPhrase np;
  do {
    np.noun = &pick(rng, german_nouns());
  } while ((np.noun->kind & kinds) == 0);
  const double kind = rng.uniform();
  if (kind < 0.42) {
    np.article = Article::definite;
    np.plural = chance(rng, 0.25);
  } else if (kind < 0.80) {
    np.article = Article::indefinite;
  } else if (negatable && kind < 0.87) {
    np.article = Article::none_of;
    np.plural = chance(rng, 0.4);
  } else {
    np.article = Article::number;
    np.plural = true;
    np.count = static_cast<int>(chance(rng, 0.8) ? 2 + rng.below(11) : 13 + rng.below(87));
  }
  const int adjectives = chance(rng, 0.4) ? (chance(rng, 0.15) ? 2 : 1) : 0;
  for (int i = 0; i < adjectives; ++i) {
    const GermanAdjective& adjective = pick(rng, german_adjectives());
    const bool repeated = !np.adjectives.empty() && np.adjectives[0] == &adjective;
    if ((adjective.kinds & np.noun->kind) == 0 || repeated) continue;
    np.adjectives.push_back(&adjective);
  }
  return np;
}

NounPhrase make_subject(Rng& rng, unsigned kinds) {
  if (!chance(rng, 0.2)) return make_noun_phrase(rng, kinds, false);
  NounPhrase np;
  const int64_t which = rng.below(std::size(kPronouns));
  np.pronoun = &kPronouns[which];
  np.plural = which >= 3;
  np.person = which == 0 ? Person::first : Person::third;
  return np;
}

Clause make_clause(Rng& rng, bool noun_subject) {
  Clause clause;
  clause.verb = &pick(rng, german_verbs());
  clause.subject =
      noun_subject ? make_noun_phrase(rng, clause.verb->subjects, false) : make_subject(rng, clause.verb->subjects);
  clause.has_object = clause.verb->objects != 0;
  if (clause.has_object) {
    do {
      clause.object = make_noun_phrase(rng, clause.verb->objects, true);
    } while (clause.object.noun == clause.subject.noun);
  }
  const double tense = rng.uniform();
  clause.tense = tense < 0.6 ? Tense::present : tense < 0.8 ? Tense::perfect : Tense::modal;
  clause.modal = &pick(rng, german_modals());
  if (chance(rng, clause.has_object ? 0.25 : 0.6)) {
    clause.place = &pick(rng, german_places());
    clause.place_noun.noun = &clause.place->noun;
    clause.place_noun.article = chance(rng, 0.75) ? Article::definite : Article::indefinite;
    const GermanAdjective& adjective = pick(rng, german_adjectives());
    if (chance(rng, 0.3) && (adjective.kinds & kPlace) != 0) clause.place_noun.adjectives.push_back(&adjective);
  }
  if (chance(rng, 0.2)) clause.time = &pick(rng, german_times());
  return clause;
}

}  // namespace qkv::grammar
