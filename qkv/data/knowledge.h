// Text that facts are learnt from: the character vocabulary, span corruption, and questions with their answers.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/base/rng.h"

namespace qkv {

/// What to do with a character that the vocabulary lacks.
enum class Missing : uint8_t { refuse, replace };

/// Ids 0 and 1 are □ (U+25A1, padding) and ⁇ (U+2047, mask); the characters of a text follow, sorted.
class CharVocabulary {
 public:
  static constexpr int64_t kMask = 1;
  static constexpr char32_t kPadCharacter = 0x25A1, kMaskCharacter = 0x2047;

  /// Every character of the text, the newline included when it is there. Throws ConfigError when the text is empty or
  /// has □ or ⁇ in it.
  static CharVocabulary of_text(std::string_view text);

  int64_t size() const { return static_cast<int64_t>(characters_.size()); }
  char32_t character(int64_t id) const;  // throws ConfigError outside the vocabulary
  /// -1 when the vocabulary lacks it.
  int64_t id_of(char32_t character) const;

  /// Throws ConfigError naming the characters that are missing and `where`; with Missing::replace they become '?' (a
  /// space where the vocabulary has no '?', else its first character). ⁇ and □ are read as the two marks.
  std::vector<int64_t> encode(std::string_view text, const std::string& where, Missing missing = Missing::refuse) const;
  std::string decode(std::span<const int64_t> ids) const;
  /// The characters of the text that are not in the vocabulary, sorted, each once.
  std::u32string missing_in(std::string_view text) const;
  /// Throws ConfigError when any text has characters that the vocabulary lacks: one message names them all.
  void require(std::span<const std::string> texts, const std::string& where) const;

  /// vocabulary.json in a run folder. Throws IoError.
  void save(const std::string& folder) const;
  static CharVocabulary load(const std::string& folder);
  bool operator==(const CharVocabulary&) const = default;

 private:
  explicit CharVocabulary(const std::u32string& sorted);
  std::u32string characters_;
  std::map<char32_t, int64_t> ids_;
};

/// A sequence as a language model is trained on it: target[i] follows input[0..i]; kNoTarget where no loss is wanted.
struct LanguageExample {
  static constexpr int64_t kNoTarget = -1;
  std::vector<int64_t> input, target;  // of the same length, never padded
};

struct SpanOptions {
  int64_t block = 128;        // model length; a document is cut to a random length in [4, ⌊7/8 · block⌋]
  double fraction = 0.25;     // of the document that the span takes on average
  bool third_mask = true;     // whether ⁇ is written after the hidden span too
  bool random_start = false;  // whether a longer document is read from a random place, not from its beginning
};

/// prefix ⁇ suffix ⁇ span ⁇ of a document, as one sequence of at most ⌊7/8 · block⌋ + 3 ids. The span is contiguous,
/// at least one character, `fraction` of the cut document on average (between half and one and a half times that, to a
/// character or two). Throws ConfigError for an empty document, block < 8, or a fraction outside (0, ½].
std::vector<int64_t> corrupt_span(std::span<const int64_t> document, const SpanOptions& options, Rng& rng);
/// Input all but the last id, target all but the first: what padding to the block would add carries no loss.
LanguageExample language_example(std::span<const int64_t> sequence);

/// One line of a finetuning file. `line` counts from 1.
struct Fact {
  std::string question, place;
  int64_t line = 0;
};

/// `question ⁇ place ⁇`, the loss on `⁇ place ⁇` only. Throws ConfigError when it is longer than block + 1 or holds
/// characters that are missing (the message names `where` and the line).
LanguageExample finetune_example(const Fact& fact, const CharVocabulary& vocabulary, int64_t block,
                                 const std::string& where, Missing missing = Missing::refuse);
/// `question ⁇`: what a model continues with the answer and a closing ⁇.
std::vector<int64_t> question_prompt(const std::string& question, const CharVocabulary& vocabulary,
                                     const std::string& where, Missing missing = Missing::refuse);
/// "Where was NAME born?" of a plain name; a text that ends in a question mark is returned as it is.
std::string as_question(const std::string& text);
/// NAME of "Where was NAME born?"; other questions are returned whole.
std::string name_in_question(const std::string& question);

/// Lines `question<TAB>place`. Throws IoError "PATH:LINE: …" for an empty line, a missing or a second tab, an empty
/// side, bytes that are not UTF-8.
std::vector<Fact> read_facts(const std::string& path);
/// One question per line, with or without a tab and an answer after it (which is left out). Throws as read_facts.
std::vector<std::string> read_questions(const std::string& path);
/// The documents of a pretraining file, one per line, empty lines left out, and its vocabulary. Throws IoError
/// "PATH:LINE: …" for bytes that are not UTF-8, or when no document is there.
struct Documents {
  std::vector<std::string> lines;
  CharVocabulary vocabulary;
};
Documents read_documents(const std::string& path);

struct Matches {
  int64_t correct = 0, total = 0;
  double percent() const { return total > 0 ? 100.0 * static_cast<double>(correct) / static_cast<double>(total) : 0; }
};
/// How many answers equal the place, letter for letter. Throws ConfigError when the numbers differ.
Matches count_matches(std::span<const std::string> answers, std::span<const Fact> facts);
/// The same for one answer to every question ("London": 25 of the 500 of birth_dev.tsv).
Matches constant_baseline(const std::string& answer, std::span<const Fact> facts);

}  // namespace qkv
