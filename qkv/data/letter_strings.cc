// Drawing distinct strings and splitting them by hash.
#include "qkv/data/letter_strings.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "qkv/base/error.h"
#include "qkv/base/rng.h"
#include "qkv/base/utf8.h"

namespace qkv {
namespace {

constexpr int64_t kMostLetters = 200;
constexpr uint64_t kTrainingStream = 11, kLongerStream = 12;

/// How many strings of these lengths exist, as far as a double can count.
double existing(int64_t letters, int64_t low, int64_t high) {
  double n = 0;
  for (int64_t l = low; l <= high; ++l) n += std::pow(static_cast<double>(letters), static_cast<double>(l));
  return n;
}

/// Uniform in [0, 1), from the letters alone.
double hash_of(const LetterString& s) {
  uint64_t h = 0x243F6A8885A308D3ull;
  for (const int64_t id : s) h = mix64(h ^ static_cast<uint64_t>(id + 1));
  return static_cast<double>(mix64(h) >> 11) * 0x1.0p-53;
}

LetterString draw(Rng& rng, int64_t letters, int64_t length) {
  LetterString s(static_cast<size_t>(length));
  for (int64_t& id : s) id = rng.below(letters);
  return s;
}

struct Splitter {
  const LetterStringOptions& options;
  LetterStringSets sets;
  std::set<LetterString> seen;
  int64_t to_train = 0, to_validate = 0;  // what the hash sends to either side

  bool full() const {
    return static_cast<int64_t>(sets.train.size()) == options.train &&
           static_cast<int64_t>(sets.validation.size()) == options.validation;
  }
  void offer(const LetterString& s) {
    const double share =
        static_cast<double>(options.validation) / static_cast<double>(options.train + options.validation);
    const bool validates = hash_of(s) < share;
    ++(validates ? to_validate : to_train);
    std::vector<LetterString>& list = validates ? sets.validation : sets.train;
    if (static_cast<int64_t>(list.size()) == (validates ? options.validation : options.train)) return;
    if (seen.insert(s).second) list.push_back(s);
  }
  /// Every string that exists, in random order: for small alphabets, where drawing would never end.
  void offer_all(Rng& rng) {
    sets = {};
    seen.clear();
    to_train = to_validate = 0;
    std::vector<LetterString> all;
    for (int64_t length = options.min_length; length <= options.max_length; ++length) {
      LetterString s(static_cast<size_t>(length), 0);
      for (bool more = true; more;) {
        all.push_back(s);
        more = false;
        for (int64_t i = length - 1; i >= 0 && !more; --i) {
          int64_t& id = s[static_cast<size_t>(i)];
          more = ++id < options.letters;
          if (!more) id = 0;
        }
      }
    }
    for (size_t i = all.size(); i > 1; --i)
      std::swap(all[i - 1], all[static_cast<size_t>(rng.below(static_cast<int64_t>(i)))]);
    for (const LetterString& s : all) offer(s);
  }
};

}  // namespace

Alphabet::Alphabet(std::string_view letters) {
  std::set<std::string> seen;
  for (const std::string_view c : utf8_characters(letters)) {
    const Utf8Char decoded = decode_utf8(c, 0);
    if (!decoded.valid || decoded.value < 0x20 || decoded.value == 0x7F || is_unicode_space(decoded.value)) {
      throw ConfigError("--alphabet: " + name_of_character(decoded.value) + " cannot be a letter");
    }
    if (!seen.insert(std::string(c)).second) {
      throw ConfigError("--alphabet: " + name_of_character(decoded.value) + " is given twice");
    }
    letters_.emplace_back(c);
  }
  if (letters_.empty() || size() > kMostLetters) {
    throw ConfigError("--alphabet: " + std::to_string(size()) + " letters; expected 1 to " +
                      std::to_string(kMostLetters));
  }
}

std::vector<int64_t> Alphabet::encode(std::string_view text) const {
  if (text.empty()) throw ConfigError("the input is empty; expected letters of the alphabet");
  std::vector<int64_t> ids;
  for (const std::string_view c : utf8_characters(text)) {
    const auto found = std::find(letters_.begin(), letters_.end(), c);
    if (found == letters_.end()) {
      std::string all;
      for (const std::string& l : letters_) all += l;
      throw ConfigError("letter " + std::to_string(ids.size() + 1) + " of the input, " +
                        name_of_character(decode_utf8(c, 0).value) + ", is not in the alphabet '" + all + "'");
    }
    ids.push_back(found - letters_.begin());
  }
  return ids;
}

std::string Alphabet::decode(std::span<const int64_t> ids) const {
  std::string text;
  for (const int64_t id : ids) {
    if (id >= 0 && id < size()) text += letter(id);
  }
  return text;
}

LetterStringSets make_letter_strings(const LetterStringOptions& options) {
  const double exist = existing(options.letters, options.min_length, options.max_length);
  const auto wanted = static_cast<double>(options.train + options.validation);
  Splitter splitter{options, {}, {}, 0, 0};
  Rng rng = Rng(options.seed).fork(kTrainingStream);
  // Drawn so often, every string has come up; what is missing then does not exist.
  const double draws = 20 * exist * static_cast<double>(options.max_length - options.min_length + 1);
  for (double i = 0; exist >= 4 * wanted && !splitter.full() && i < draws; ++i) {
    const int64_t length = options.min_length + rng.below(options.max_length - options.min_length + 1);
    splitter.offer(draw(rng, options.letters, length));
  }
  if (!splitter.full()) splitter.offer_all(rng);
  if (!splitter.full()) {
    const auto share = [](int64_t can, const char* what, int64_t wanted) {
      return std::to_string(can) + what + std::to_string(wanted) + " wanted)";
    };
    throw ConfigError("of the " + std::to_string(static_cast<int64_t>(exist)) + " strings of " +
                      std::to_string(options.letters) + " letters and lengths " + std::to_string(options.min_length) +
                      " to " + std::to_string(options.max_length) + " that exist, " +
                      share(splitter.to_train, " can train (", options.train) + " and " +
                      share(splitter.to_validate, " validate (", options.validation) +
                      "; use longer strings, more letters or smaller sets");
  }
  return std::move(splitter.sets);
}

std::vector<LetterString> strings_of_lengths(const LetterStringOptions& options, int64_t low, int64_t high,
                                             int64_t count) {
  std::vector<LetterString> strings;
  for (int64_t length = low; length <= high; ++length) {
    Rng rng = Rng(options.seed).fork(kLongerStream + static_cast<uint64_t>(length));
    const auto most = static_cast<int64_t>(std::min(existing(options.letters, length, length), 1e9));
    std::set<LetterString> seen;
    while (static_cast<int64_t>(seen.size()) < std::min(count, most)) {
      LetterString s = draw(rng, options.letters, length);
      if (seen.insert(s).second) strings.push_back(std::move(s));
    }
  }
  return strings;
}

}  // namespace qkv
