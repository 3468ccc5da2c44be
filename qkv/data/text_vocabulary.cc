// Learning a vocabulary from a text of any size.
#include <algorithm>

#include "qkv/base/budget.h"
#include "qkv/base/parallel.h"
#include "qkv/base/utf8.h"
#include "qkv/data/preparation.h"
#include "qkv/data/token_stream.h"

namespace qkv {
namespace {

PieceCounts count_characters_of(const PlainText& text, TextPart part) {
  // All of the text is counted already, and what is left out is the smaller part.
  CharacterCounts counts = text.counts();
  for (const TextPart out : {TextPart{0, part.begin}, TextPart{part.end, text.all().end}}) {
    for (const auto& [c, n] : text.counts(out)) counts[c] -= n;
  }
  PieceCounts pieces;
  for (const auto& [c, n] : counts) {
    if (c != U'\n' && n > 0) pieces[utf8_of(c)] = n;
  }
  return pieces;
}

PieceCounts count_words_of(const PlainText& text, TextPart part, bool lowercase) {
  constexpr size_t kAtOnce = 64;
  PieceCounts counts;
  for (TextPart rest = part; rest.size() > 0;) {
    std::vector<std::string> stretches;
    while (rest.size() > 0 && stretches.size() < kAtOnce) stretches.push_back(text.take_stretch(rest));
    std::vector<PieceCounts> found(stretches.size());
    parallel_for(static_cast<int64_t>(found.size()), [&](int64_t i) {
      count_words(stretches[static_cast<size_t>(i)], lowercase, found[static_cast<size_t>(i)]);
    });
    check_budget();
    for (const PieceCounts& some : found) {
      for (const auto& [word, n] : some) counts[word] += n;
    }
    tell_progress("words of " + text.name(), static_cast<uint64_t>(rest.begin - part.begin),
                  static_cast<uint64_t>(part.size()));
  }
  return counts;
}

void add_lines(std::vector<std::string>& lines, std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
}

/// Stretches of whole lines, the first of the part and others that begin after the next line end.
std::vector<std::string> sampled_lines(const PlainText& text, TextPart part, int64_t most) {
  constexpr int64_t kStretches = 256;
  const int64_t length = std::min(most / kStretches, PlainText::kStretch);
  std::vector<std::string> lines;
  for (int64_t i = 0; i < kStretches; ++i) {
    const int64_t begin = part.begin + (part.size() - length) / (kStretches - 1) * i;
    const std::string stretch = text.characters({begin, begin + length});
    const auto border = [&](char c) { return i == 0 ? 0 : stretch.find(c) + 1; };  // 0: none
    size_t from = border('\n'), to = stretch.rfind('\n');
    if (to == std::string::npos || from > to) from = border(' '), to = stretch.rfind(' ');  // one long line
    if (to == std::string::npos || from > to) from = 0, to = stretch.size();
    add_lines(lines, std::string_view(stretch).substr(from, to - from));
  }
  tell_note("the tokenizer is learned from " + std::to_string(kStretches) + " stretches of " + std::to_string(length) +
            " characters, spread evenly over the text for training");
  return lines;
}

}  // namespace

std::shared_ptr<const Tokenizer> train_tokenizer(const PlainText& text, TextPart part, const TokenizerOptions& options,
                                                 int64_t most) {
  if (options.kind == "char") return tokenizer_of_counts(count_characters_of(text, part), options);
  if (options.kind == "word") return tokenizer_of_counts(count_words_of(text, part, options.lowercase), options);
  if (part.size() > most) return train_tokenizer(sampled_lines(text, part, most), options);
  std::vector<std::string> lines;
  add_lines(lines, text.characters(part));
  return train_tokenizer(lines, options);
}

}  // namespace qkv
