// Text that facts are learnt from: the character vocabulary, span corruption, and questions with their answers.
#include "qkv/data/knowledge.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "qkv/base/error.h"
#include "qkv/base/utf8.h"
#include "qkv/data/text_file.h"
#include "qkv/io/file.h"
#include "qkv/io/json.h"

namespace qkv {
namespace {

constexpr const char* kVocabularyFile = "/vocabulary.json";
constexpr std::string_view kBefore = "Where was ", kAfter = " born?";

std::string names_of(const std::u32string& characters) {
  constexpr size_t kShown = 20;
  std::string text;
  for (size_t i = 0; i < characters.size() && i < kShown; ++i) {
    text += (i > 0 ? ", " : "") + name_of_character(characters[i]);
  }
  return characters.size() > kShown ? text + " and " + std::to_string(characters.size() - kShown) + " more" : text;
}

[[noreturn]] void refuse(const std::u32string& missing, const std::string& where) {
  throw ConfigError(where + ": the model's vocabulary lacks " + names_of(missing) +
                    "; use text of the same characters, or ask for them to be replaced");
}

[[noreturn]] void bad_line(const std::string& path, size_t index, const std::string& reason) {
  throw IoError(path + ":" + std::to_string(index + 1) + ": " + reason);
}

std::vector<std::string> read_good_lines(const std::string& path) {
  std::vector<std::string> lines = read_lines(path);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (first_invalid_utf8(lines[i]) >= 0) bad_line(path, i, "not UTF-8");
  }
  return lines;
}

}  // namespace

CharVocabulary::CharVocabulary(const std::u32string& sorted) : characters_{kPadCharacter, kMaskCharacter} {
  characters_ += sorted;
  for (size_t i = 0; i < characters_.size(); ++i) ids_.emplace(characters_[i], static_cast<int64_t>(i));
}

CharVocabulary CharVocabulary::of_text(std::string_view text) {
  const std::u32string all = utf8_to_code_points(text);
  const std::set<char32_t> seen(all.begin(), all.end());
  if (seen.empty()) throw ConfigError("no text to take a vocabulary from");
  for (const char32_t mark : {kPadCharacter, kMaskCharacter}) {
    if (seen.count(mark)) {
      throw ConfigError("the text contains " + name_of_character(mark) + ", which stands for a mark; remove it");
    }
  }
  return CharVocabulary(std::u32string(seen.begin(), seen.end()));
}

char32_t CharVocabulary::character(int64_t id) const {
  if (id < 0 || id >= size()) {
    throw ConfigError("character id " + std::to_string(id) + " is outside the vocabulary of " + std::to_string(size()));
  }
  return characters_[static_cast<size_t>(id)];
}

int64_t CharVocabulary::id_of(char32_t character) const {
  const auto found = ids_.find(character);
  return found == ids_.end() ? -1 : found->second;
}

std::vector<int64_t> CharVocabulary::encode(std::string_view text, const std::string& where, Missing missing) const {
  std::vector<int64_t> ids;
  const int64_t question = id_of(U'?'), space = id_of(U' ');
  const int64_t substitute = question >= 0 ? question : space >= 0 ? space : kMask + 1;
  for (const char32_t c : utf8_to_code_points(text)) {
    const int64_t id = id_of(c);
    if (id < 0 && missing == Missing::refuse) refuse(missing_in(text), where);
    ids.push_back(id < 0 ? substitute : id);
  }
  return ids;
}

std::string CharVocabulary::decode(std::span<const int64_t> ids) const {
  std::string text;
  for (const int64_t id : ids) append_utf8(text, character(id));
  return text;
}

std::u32string CharVocabulary::missing_in(std::string_view text) const {
  std::set<char32_t> missing;
  for (const char32_t c : utf8_to_code_points(text)) {
    if (id_of(c) < 0) missing.insert(c);
  }
  return {missing.begin(), missing.end()};
}

void CharVocabulary::require(std::span<const std::string> texts, const std::string& where) const {
  std::set<char32_t> missing;
  for (const std::string& text : texts) {
    for (const char32_t c : missing_in(text)) missing.insert(c);
  }
  if (!missing.empty()) refuse({missing.begin(), missing.end()}, where);
}

void CharVocabulary::save(const std::string& folder) const {
  std::string text;
  for (size_t i = kMask + 1; i < characters_.size(); ++i) append_utf8(text, characters_[i]);
  write_file_atomic(folder + kVocabularyFile,
                    nlohmann::json{{"kind", "characters"}, {"characters", text}}.dump() + "\n");
}

CharVocabulary CharVocabulary::load(const std::string& folder) {
  const std::string path = folder + kVocabularyFile;
  const Json json = read_json(path, "a vocabulary of characters");
  const std::string text = JsonObject(json, path).text("characters");
  const std::u32string characters = utf8_to_code_points(text);
  if (!characters.empty() && std::is_sorted(characters.begin(), characters.end(), std::less_equal<>())) {
    return of_text(text);
  }
  throw IoError(path + ": not a vocabulary of characters");
}

std::vector<int64_t> corrupt_span(std::span<const int64_t> document, const SpanOptions& options, Rng& rng) {
  if (document.empty()) throw ConfigError("an empty document has no span to mask");
  if (options.block < 8) throw ConfigError("the block must be at least 8, not " + std::to_string(options.block));
  if (!(options.fraction > 0 && options.fraction <= 0.5)) {
    throw ConfigError("the span's share must be above 0 and at most 0.5, not " + std::to_string(options.fraction));
  }
  const int64_t longest = options.block * 7 / 8;
  const auto whole = static_cast<int64_t>(document.size());
  const int64_t length = std::min(whole, 4 + rng.below(longest - 4 + 1));
  const int64_t start = options.random_start ? rng.below(whole - length + 1) : 0;
  const auto cut = document.subspan(static_cast<size_t>(start), static_cast<size_t>(length));

  // A span of s is drawn evenly from [low, total - low] with E[total] = 2 · fraction · length, so its mean is exact.
  const double twice = 2 * options.fraction * static_cast<double>(length);
  const auto total = static_cast<int64_t>(twice) + (rng.uniform() < twice - std::floor(twice) ? 1 : 0);
  const int64_t low = std::max<int64_t>(1, static_cast<int64_t>(twice / 4));
  const int64_t size = std::min(length, low + rng.below(std::max<int64_t>(total - 2 * low, 0) + 1));
  const int64_t begin = rng.below(length - size + 1);

  std::vector<int64_t> out;
  out.reserve(static_cast<size_t>(length) + 3);
  const auto append = [&](int64_t from, int64_t to) { out.insert(out.end(), cut.begin() + from, cut.begin() + to); };
  append(0, begin);
  out.push_back(CharVocabulary::kMask);
  append(begin + size, length);
  out.push_back(CharVocabulary::kMask);
  append(begin, begin + size);
  if (options.third_mask) out.push_back(CharVocabulary::kMask);
  return out;
}

LanguageExample language_example(std::span<const int64_t> sequence) {
  if (sequence.size() < 2) return {};
  return {{sequence.begin(), sequence.end() - 1}, {sequence.begin() + 1, sequence.end()}};
}

std::vector<int64_t> question_prompt(const std::string& question, const CharVocabulary& vocabulary,
                                     const std::string& where, Missing missing) {
  std::vector<int64_t> ids = vocabulary.encode(question, where, missing);
  ids.push_back(CharVocabulary::kMask);
  return ids;
}

LanguageExample finetune_example(const Fact& fact, const CharVocabulary& vocabulary, int64_t block,
                                 const std::string& where, Missing missing) {
  const std::string place_in_file = where + ":" + std::to_string(fact.line);
  std::vector<int64_t> all = question_prompt(fact.question, vocabulary, place_in_file, missing);
  const size_t question = all.size() - 1;
  const std::vector<int64_t> place = vocabulary.encode(fact.place, place_in_file, missing);
  all.insert(all.end(), place.begin(), place.end());
  all.push_back(CharVocabulary::kMask);
  if (static_cast<int64_t>(all.size()) > block + 1) {
    throw ConfigError(place_in_file + ": question and place take " + std::to_string(all.size() - 1) +
                      " characters, the model reads " + std::to_string(block));
  }
  LanguageExample example = language_example(all);
  std::fill_n(example.target.begin(), question > 0 ? question - 1 : 0, LanguageExample::kNoTarget);
  return example;
}

std::string as_question(const std::string& text) {
  return text.ends_with('?') ? text : std::string(kBefore) + text + std::string(kAfter);
}

std::string name_in_question(const std::string& question) {
  if (question.size() <= kBefore.size() + kAfter.size() || !question.starts_with(kBefore) ||
      !question.ends_with(kAfter))
    return question;
  return question.substr(kBefore.size(), question.size() - kBefore.size() - kAfter.size());
}

std::vector<Fact> read_facts(const std::string& path) {
  std::vector<Fact> facts;
  const std::vector<std::string> lines = read_good_lines(path);
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    if (split_words(line).empty()) bad_line(path, i, "empty line; expected question<TAB>place");
    const size_t tab = line.find('\t');
    if (tab == std::string::npos) bad_line(path, i, "no tab; expected question<TAB>place");
    if (line.find('\t', tab + 1) != std::string::npos)
      bad_line(path, i, "more than one tab; expected question<TAB>place");
    if (tab == 0 || tab + 1 == line.size()) bad_line(path, i, "nothing beside the tab; expected question<TAB>place");
    facts.push_back({line.substr(0, tab), line.substr(tab + 1), static_cast<int64_t>(i) + 1});
  }
  if (facts.empty()) throw IoError("cannot use " + path + ": it is empty; expected lines of question<TAB>place");
  return facts;
}

std::vector<std::string> read_questions(const std::string& path) {
  std::vector<std::string> questions = read_good_lines(path);
  for (size_t i = 0; i < questions.size(); ++i) {
    const size_t tab = questions[i].find('\t');
    if (tab != std::string::npos) questions[i].resize(tab);
    if (split_words(questions[i]).empty()) bad_line(path, i, "empty line; expected a question");
  }
  if (questions.empty()) throw IoError("cannot use " + path + ": it is empty; expected one question per line");
  return questions;
}

Documents read_documents(const std::string& path) {
  std::vector<std::string> lines = read_good_lines(path);
  std::string text;
  for (const std::string& line : lines) (text += line) += '\n';
  std::erase_if(lines, [](const std::string& line) { return split_words(line).empty(); });
  if (lines.empty()) throw IoError("cannot use " + path + ": it has no text; expected one document per line");
  return {std::move(lines), CharVocabulary::of_text(text)};
}

Matches count_matches(std::span<const std::string> answers, std::span<const Fact> facts) {
  if (answers.size() != facts.size()) {
    throw ConfigError(std::to_string(answers.size()) + " answers to " + std::to_string(facts.size()) + " questions");
  }
  Matches matches{.correct = 0, .total = static_cast<int64_t>(facts.size())};
  for (size_t i = 0; i < facts.size(); ++i) matches.correct += answers[i] == facts[i].place ? 1 : 0;
  return matches;
}

Matches constant_baseline(const std::string& answer, std::span<const Fact> facts) {
  return count_matches(std::vector<std::string>(facts.size(), answer), facts);
}

}  // namespace qkv
