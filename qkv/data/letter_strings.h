// Random strings over a small alphabet: distinct, split by hash, the data of the task "reverse".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

/// The letters strings are made of; letter i has id i.
class Alphabet {
 public:
  /// From the UTF-8 characters of `letters`. Throws ConfigError unless they are 1 to 200 distinct visible characters.
  explicit Alphabet(std::string_view letters);

  int64_t size() const { return static_cast<int64_t>(letters_.size()); }
  const std::string& letter(int64_t id) const { return letters_[static_cast<size_t>(id)]; }
  /// Throws ConfigError on an empty text or a character that is no letter, naming it and its place.
  std::vector<int64_t> encode(std::string_view text) const;
  /// Ids outside the alphabet are left out.
  std::string decode(std::span<const int64_t> ids) const;

 private:
  std::vector<std::string> letters_;
};

using LetterString = std::vector<int64_t>;

struct LetterStringOptions {
  int64_t letters = 4;
  int64_t min_length = 1, max_length = 20;
  int64_t train = 10000, validation = 1000;
  uint64_t seed = 1;
};

/// Distinct strings with no string in two lists. A string's hash alone decides between training and validation (in
/// the proportion of their sizes), so the few short strings that exist go where the hash sends them.
struct LetterStringSets {
  std::vector<LetterString> train, validation;
};

/// Lengths are drawn uniformly, letters too. Throws ConfigError when not enough strings of these lengths exist.
LetterStringSets make_letter_strings(const LetterStringOptions& options);

/// `count` random strings of each length from `low` to `high`, distinct where enough exist, by length ascending.
std::vector<LetterString> strings_of_lengths(const LetterStringOptions& options, int64_t low, int64_t high,
                                             int64_t count);

}  // namespace qkv
