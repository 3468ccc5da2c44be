// The words of the generated German-English corpus, with the forms its grammar needs.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace qkv {

/// What a noun is, as a bit; a verb lists the kinds it takes.
enum NounKind : unsigned {
  kPerson = 1,
  kAnimal = 2,
  kThing = 4,
  kFood = 8,
  kClothes = 16,
  kOpenable = 32,
  kReadable = 64,
  kPlace = 128,
  kGoods = kThing | kFood | kClothes | kReadable,
  kAnything = kPerson | kAnimal | kGoods,
};

enum class Gender : uint8_t { masculine, feminine, neuter };
enum class Case : uint8_t { nominative, accusative, dative };

struct GermanNoun {
  const char *singular, *plural;
  Gender gender;
  const char *english, *english_plural;
  unsigned kind;
  const char* oblique = nullptr;  // accusative and dative singular where they differ (der Junge, den Jungen)
};

struct GermanAdjective {
  const char *stem, *base;  // müd- for the endings, müde by itself
  const char* english;
  unsigned kinds;
};

/// ich = the infinitive without -n, as all of these verbs have it.
struct GermanVerb {
  const char *infinitive, *third, *participle;                          // without the prefix: machen, macht, gemacht
  const char* prefix;                                                   // "" or the separable prefix: auf
  const char *english, *english_third, *english_participle, *particle;  // look, looks, looked, for
  unsigned subjects, objects;                                           // objects 0: intransitive
  bool with_sein = false;                                               // perfect with sein
};

struct GermanModal {
  const char *singular, *plural;
  const char *english, *english_third, *particle;  // want, wants, to
};

/// A matrix verb that takes a dass clause.
struct GermanBelief {
  const char *first, *third, *plural;
  const char *english, *english_third;
};

struct GermanPlace {
  const char *preposition, *english;
  GermanNoun noun;
};

struct WordPair {
  const char *german, *english;
};

std::span<const GermanNoun> german_nouns();
std::span<const GermanAdjective> german_adjectives();
std::span<const GermanVerb> german_verbs();
std::span<const GermanModal> german_modals();
std::span<const GermanBelief> german_beliefs();
std::span<const GermanPlace> german_places();
std::span<const WordPair> german_times();
std::span<const WordPair> german_conjunctions();

/// 2 to 99 in words: dreiundzwanzig, twenty-three.
std::string german_number(int n);
std::string english_number(int n);

}  // namespace qkv
