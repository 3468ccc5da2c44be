// The grammar's parts: noun phrases and clauses that can say themselves in German and in English.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/base/rng.h"
#include "qkv/data/german_lexicon.h"

namespace qkv::grammar {

template <class T>
const T& pick(Rng& rng, std::span<const T> items) {
  return items[static_cast<size_t>(rng.below(static_cast<int64_t>(items.size())))];
}
inline bool chance(Rng& rng, double p) { return rng.uniform() < p; }

using Words = std::vector<std::string>;
/// Appends the words of a text.
void say(Words& out, std::string_view text);

enum class Article : uint8_t { definite, indefinite, none_of, number };  // der, ein, kein, zwei
enum class Person : uint8_t { first, third };

struct NounPhrase {
  const GermanNoun* noun = nullptr;  // none: a pronoun
  const WordPair* pronoun = nullptr;
  Article article = Article::definite;
  int count = 1;  // number word when above 1 and article is number
  bool plural = false;
  Person person = Person::third;
  std::vector<const GermanAdjective*> adjectives;

  void german(Words& out, Case grammatical_case) const;
  void english(Words& out) const;
  /// I, we, they and plurals take the English verb without -s.
  bool takes_base_form() const { return plural || person == Person::first; }
  /// Whether its article or pronoun tells the nominative from the accusative.
  bool shows_case() const { return pronoun ? true : !plural && noun->gender == Gender::masculine; }
  /// der, die, das as a relative pronoun.
  std::string relative(Case grammatical_case) const;
};

enum class Tense : uint8_t { present, perfect, modal };
/// Where the finite verb stands: second after the subject, second after a first word that was already said, first
/// (questions), last (subordinate).
enum class Order : uint8_t { subject_first, inverted, last };

struct Clause {
  NounPhrase subject, object;
  bool has_object = false;
  const GermanVerb* verb = nullptr;
  Tense tense = Tense::present;
  const GermanModal* modal = nullptr;
  const GermanPlace* place = nullptr;
  NounPhrase place_noun;
  const WordPair* time = nullptr;

  /// Leaves out what a relative clause has said already.
  struct Omit {
    bool subject = false, object = false, time = false;
  };
  void german(Words& out, Order order, Omit omit) const;
  void english(Words& out, Omit omit) const;
  void english_question(Words& out) const;
};

/// A noun phrase or, one time in five, a pronoun.
NounPhrase make_subject(Rng& rng, unsigned kinds);
/// A random noun phrase of one of the kinds. `negatable`: may also be kein.
NounPhrase make_noun_phrase(Rng& rng, unsigned kinds, bool negatable);
/// A random clause; its subject is a noun when `noun_subject`.
Clause make_clause(Rng& rng, bool noun_subject);

/// An adjective after `article`: alter, alte, altes, alten.
std::string inflect(const GermanAdjective& adjective, Article article, Gender gender, bool plural, Case c);

}  // namespace qkv::grammar
