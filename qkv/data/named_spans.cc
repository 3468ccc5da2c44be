// Finding names in a document by their capitals, and hiding one of them.
#include "qkv/data/named_spans.h"

#include <algorithm>
#include <set>
#include <string>

#include "qkv/base/error.h"
#include "qkv/base/utf8.h"
#include "qkv/data/knowledge.h"

namespace qkv {
namespace {

constexpr int64_t kShortWord = 3;

bool is_upper(char32_t c) { return unicode_lower(c) != c; }

bool in_word(char32_t c) {
  constexpr char32_t kFirstLetter = 0xC0;  // above: accented letters and other scripts
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '\'' || c == '-' ||
         c == '.' || c >= kFirstLetter;
}

int64_t title_end(const std::u32string& text) {
  int64_t first = 0, word = 0;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == ' ') word = static_cast<int64_t>(i) + 1;
    if (text[i] != '.' || text[i + 1] != ' ') continue;
    const auto at = static_cast<int64_t>(i);
    if (at - word >= kShortWord) return at;
    if (first == 0) first = at;
  }
  return first;
}

/// A word without the marks at its end: "Jr." → "Jr", "Paris-" → "Paris".
int64_t trimmed(const std::u32string& text, int64_t begin, int64_t end) {
  const auto mark = [](char32_t c) { return c == '.' || c == '\'' || c == '-'; };
  while (end > begin && mark(text[static_cast<size_t>(end - 1)])) --end;
  return end;
}

size_t drawn(size_t n, std::span<const double> probabilities, Rng& rng) {
  double u = rng.uniform();
  if (probabilities.empty()) return static_cast<size_t>(u * static_cast<double>(n));
  for (size_t i = 0; i + 1 < n; ++i) {
    u -= probabilities[i];
    if (u < 0) return i;
  }
  return n - 1;
}

}  // namespace

NamedSpans find_named_spans(std::string_view document) {
  const std::u32string text = utf8_to_code_points(document);
  const auto n = static_cast<int64_t>(text.size());
  const auto at = [&](int64_t i) { return text[static_cast<size_t>(i)]; };
  const auto part = [&](int64_t b, int64_t e) {
    return text.substr(static_cast<size_t>(b), static_cast<size_t>(e - b));
  };
  NamedSpans found;
  found.title = title_end(text);
  std::set<std::u32string> own;
  for (int64_t i = 0, b = 0; i <= found.title; ++i) {
    if (i < found.title && at(i) != ' ') continue;
    own.insert(part(b, i));
    b = i + 1;
  }
  int64_t run = -1, run_end = 0;
  bool all_own = true;
  const auto close = [&] {
    if (run >= 0 && !all_own) found.names.push_back({run, run_end});
    run = -1;
    all_own = true;
  };
  for (int64_t i = found.title > 0 ? found.title + 2 : 0; i < n; ++i) {
    if (i > 0 && at(i - 1) == ' ' && at(i) != ' ') found.words.push_back(i);
    if (!in_word(at(i)) || at(i) == '.') {
      if (at(i) != ' ') close();
      continue;
    }
    int64_t end = i;
    while (end < n && in_word(at(end))) ++end;
    const int64_t word_end = trimmed(text, i, end);
    if (word_end > i && is_upper(at(i))) {
      if (run < 0) run = i;
      run_end = word_end;
      all_own = all_own && own.count(part(i, word_end)) > 0;
      if (word_end < end) close();
    } else {
      close();
    }
    i = end - 1;
  }
  close();
  return found;
}

std::vector<int64_t> corrupt_named_span(std::span<const int64_t> document, const NamedSpans& spans,
                                        const NamedSpanOptions& options, Rng& rng) {
  if (spans.names.empty()) throw ConfigError("a document without a name has none to hide");
  const CharSpan name = spans.names[drawn(spans.names.size(), options.probabilities, rng)];
  const int64_t head = spans.title > 0 ? spans.title + 2 : 0;
  const int64_t most = options.block * 7 / 8;
  int64_t room = std::max<int64_t>(most - head - (name.end - name.begin), 0);
  // Candidate beginnings of what stays before the name, nearest first, and ends of what stays after it.
  std::vector<int64_t> begins{name.begin}, ends{name.end};
  for (auto w = spans.words.rbegin(); w != spans.words.rend(); ++w) {
    if (*w < name.begin) begins.push_back(*w);
  }
  for (const int64_t w : spans.words) {
    if (w > name.end) ends.push_back(w - 1);
  }
  ends.push_back(static_cast<int64_t>(document.size()));
  const auto draw = [&](const std::vector<int64_t>& from) {
    const double u = rng.uniform();
    return from[static_cast<size_t>(u * u * static_cast<double>(from.size()))];
  };
  const int64_t begin = std::max(draw(begins), name.begin - room);
  room -= name.begin - begin;
  const int64_t end = std::min(draw(ends), name.end + room);

  std::vector<int64_t> out;
  const auto append = [&](int64_t from, int64_t to) {
    out.insert(out.end(), document.begin() + from, document.begin() + to);
  };
  append(0, std::min(head, std::max<int64_t>(most - (name.end - name.begin), 0)));
  append(begin, name.begin);
  out.push_back(CharVocabulary::kMask);
  append(name.end, end);
  out.push_back(CharVocabulary::kMask);
  append(name.begin, std::min(name.end, name.begin + most));
  out.push_back(CharVocabulary::kMask);
  return out;
}

}  // namespace qkv
