// Invented people and their birth places, in the format of the real study, so that it runs without data.
#include "qkv/data/generated_knowledge.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "qkv/base/error.h"
#include "qkv/data/batching.h"

namespace qkv {
namespace {

constexpr const char* kStarts[] = {"Ba", "Be", "Bo", "Da", "De", "Do", "Fa", "Fe", "Ga", "Go", "Ha", "Jo",
                                   "Ka", "Ke", "La", "Le", "Lo", "Ma", "Me", "Mi", "Na", "No", "Pa", "Pe",
                                   "Ra", "Ri", "Ro", "Sa", "Se", "Ta", "Ti", "To", "Va", "Vi", "Wa", "Za"};
constexpr const char* kMiddles[] = {"ba", "da", "de", "la", "le", "li", "lo", "ma", "mi", "na",
                                    "nu", "no", "ra", "re", "ri", "ro", "sa", "ta", "ti", "vo"};
constexpr const char* kEnds[] = {"n", "r", "s", "l", "k", "nd", "lt", "sh", "m", "th"};
constexpr const char* kPlaceEnds[] = {"burg", "ton", "ville", "mouth", "berg", "field", "stad", "port"};
constexpr const char* kJobs[] = {"painter",   "botanist", "footballer", "composer", "lawyer",  "novelist",
                                 "physicist", "sculptor", "politician", "pianist",  "surgeon", "geologist"};
constexpr const char* kMonths[] = {"January", "February", "March",     "April",   "May",      "June",
                                   "July",    "August",   "September", "October", "November", "December"};

template <class T, size_t N>
const T& pick(const T (&items)[N], Rng& rng) {
  return items[static_cast<size_t>(rng.below(N))];
}

std::string make_word(Rng& rng) {
  std::string word = pick(kStarts, rng);
  if (rng.below(3) > 0) word += pick(kMiddles, rng);
  return word + pick(kEnds, rng);
}

std::string make_place(Rng& rng) { return std::string(pick(kStarts, rng)) + pick(kEnds, rng) + pick(kPlaceEnds, rng); }

// `n` different texts; gives up, with a message, when the syllables do not make that many.
template <class Make>
std::vector<std::string> distinct(int64_t n, const char* what, Rng& rng, Make make) {
  std::set<std::string> seen;
  std::vector<std::string> all;
  constexpr int kPatience = 1000;
  for (int in_vain = 0; static_cast<int64_t>(all.size()) < n;) {
    std::string text = make(rng);
    if (seen.insert(text).second) {
      all.push_back(std::move(text));
      in_vain = 0;
    } else if (++in_vain > kPatience) {
      throw ConfigError("cannot invent " + std::to_string(n) + " different " + what);
    }
  }
  return all;
}

struct Life {
  std::string name, last, place, job, born, year;
};

// The ways a text tells where somebody was born; %n name, %l last name, %p place, %j job, %b birthday, %y a later year.
constexpr const char* kTemplates[] = {
    "%n. %n was born in %p.",
    "%n. %n is a %j born in %p.",
    "%n. Born in %p, %l became a %j in %y.",
    "%n. %n (born %b in %p) is a %j.",
    "%n. The %j %n was born on %b in %p.",
    "%n. %l was born in %p and worked there as a %j until %y.",
    "%n. %n grew up in %p, where %l was born on %b.",
    "%n. A native of %p, %l was a well-known %j.",
};

std::string fill(const char* pattern, const Life& life) {
  std::string text;
  for (const char* c = pattern; *c != '\0'; ++c) {
    if (*c != '%') {
      text.push_back(*c);
      continue;
    }
    switch (*++c) {
      case 'n':
        text += life.name;
        break;
      case 'l':
        text += life.last;
        break;
      case 'p':
        text += life.place;
        break;
      case 'j':
        text += life.job;
        break;
      case 'b':
        text += life.born;
        break;
      default:
        text += life.year;
        break;
    }
  }
  return text;
}

Life make_life(const std::string& name, const std::vector<std::string>& places, Rng& rng) {
  Life life;
  life.name = name;
  life.last = name.substr(name.find(' ') + 1);
  life.place = places[static_cast<size_t>(rng.below(static_cast<int64_t>(places.size())))];
  life.job = pick(kJobs, rng);
  const int64_t year = 1800 + rng.below(190);
  life.born = std::to_string(1 + rng.below(28)) + " " + pick(kMonths, rng) + " " + std::to_string(year);
  life.year = std::to_string(year + 20 + rng.below(40));
  return life;
}

void check(const GeneratedKnowledgeOptions& options) {
  const auto need = [](bool good, const std::string& what) {
    if (!good) throw ConfigError("the generated corpus needs " + what);
  };
  need(options.people >= 2, "at least 2 people");
  need(options.places >= 2, "at least 2 places");
  need(options.documents >= 1 && options.documents <= static_cast<int64_t>(std::size(kTemplates)),
       "between 1 and " + std::to_string(std::size(kTemplates)) + " documents per person");
  need(options.dev_share > 0 && options.dev_share < 1, "a share of questions for dev between 0 and 1");
}

}  // namespace

GeneratedKnowledge generate_knowledge(const GeneratedKnowledgeOptions& options) {
  check(options);
  Rng rng = Rng(options.seed).fork(0x6B6E6F77);
  const std::vector<std::string> places = distinct(options.places, "places", rng, make_place);
  std::vector<std::string> names = distinct(options.people + options.strangers, "names", rng, [](Rng& r) {
    const std::string first = make_word(r);  // in two steps: the order of the draws must not be the compiler's choice
    return first + " " + make_word(r);
  });
  GeneratedKnowledge out;
  out.strangers.assign(names.begin() + options.people, names.end());
  names.resize(static_cast<size_t>(options.people));
  const auto in_dev = static_cast<int64_t>(std::lround(options.dev_share * static_cast<double>(options.people)));
  const int64_t dev = std::clamp<int64_t>(in_dev, 1, options.people - 1);
  for (int64_t i = 0; i < options.people; ++i) {
    const Life life = make_life(names[static_cast<size_t>(i)], places, rng);
    const std::vector<int64_t> order =
        shuffled_indices(static_cast<int64_t>(std::size(kTemplates)), options.seed, static_cast<uint64_t>(i));
    for (int64_t k = 0; k < options.documents; ++k) {
      out.documents.push_back(fill(kTemplates[order[static_cast<size_t>(k)]], life));
    }
    std::vector<Fact>& facts = i < dev ? out.dev : out.train;
    facts.push_back({as_question(life.name), life.place, static_cast<int64_t>(facts.size()) + 1});
  }
  // The order of the documents must not reveal who the questions are about.
  std::vector<std::string> shuffled;
  for (const int64_t i : shuffled_indices(static_cast<int64_t>(out.documents.size()), options.seed, ~uint64_t{0})) {
    shuffled.push_back(std::move(out.documents[static_cast<size_t>(i)]));
  }
  out.documents = std::move(shuffled);
  return out;
}

}  // namespace qkv
