// Corpus BLEU, figure for figure what sacreBLEU 2 computes, with its signature line.
#include "qkv/data/bleu.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <unordered_map>

#include "qkv/base/error.h"
#include "qkv/base/utf8.h"

namespace qkv {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_stop(char c) { return c == '.' || c == ','; }
// ASCII punctuation that always stands alone: all but ' , - .
bool stands_alone(char c) {
  return (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') ||
         (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

// One pass of a rule on two neighbouring bytes: where they match, both are consumed. Working on bytes gives what
// working on characters would: the byte beside a full stop or digit only matters for being one itself.
template <class Match, class Emit>
std::string rewrite_pairs(const std::string& text, Match match, Emit emit) {
  std::string out;
  out.reserve(text.size() * 2);
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 < text.size() && match(text[i], text[i + 1])) {
      emit(out, text[i], text[i + 1]);
      ++i;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

std::string join(const std::vector<std::string_view>& words) {
  std::string out;
  for (const std::string_view word : words) {
    if (!out.empty()) out.push_back(' ');
    out += word;
  }
  return out;
}

using NgramCounts = std::unordered_map<std::string_view, int64_t>;

// Counts all n-grams of one order; an n-gram is the stretch of `segment` from its first word to its last.
NgramCounts count_ngrams(std::string_view segment, const std::vector<std::string_view>& words, size_t order) {
  NgramCounts counts;
  for (size_t i = 0; i + order <= words.size(); ++i) {
    const char* begin = words[i].data();
    const std::string_view last = words[i + order - 1];
    ++counts[segment.substr(static_cast<size_t>(begin - segment.data()),
                            static_cast<size_t>(last.data() + last.size() - begin))];
  }
  return counts;
}

struct Segment {
  std::string text;
  std::vector<std::string_view> words;  // into text

  explicit Segment(std::string_view raw) : text(bleu_segment(raw)) { words = split_words(text); }
  Segment(const Segment&) = delete;  // words point into text
  Segment& operator=(const Segment&) = delete;
};

int64_t nearest_length(int64_t length, std::span<const int64_t> choices) {
  return *std::min_element(choices.begin(), choices.end(), [&](int64_t a, int64_t b) {
    const int64_t to_a = std::abs(a - length), to_b = std::abs(b - length);
    return to_a != to_b ? to_a < to_b : a < b;
  });
}

void add_segment(BleuCounts& counts, const std::string& output, std::span<const std::string_view> references) {
  const Segment hypothesis(output);
  std::vector<NgramCounts> allowed(kOrders);
  std::vector<std::unique_ptr<Segment>> segments;  // kept while `allowed` points into them
  std::vector<int64_t> lengths;
  for (const std::string_view reference : references) {
    const Segment& segment = *segments.emplace_back(std::make_unique<Segment>(reference));
    lengths.push_back(static_cast<int64_t>(segment.words.size()));
    for (size_t n = 0; n < allowed.size(); ++n) {
      for (const auto& [ngram, count] : count_ngrams(segment.text, segment.words, n + 1)) {
        int64_t& most = allowed[n][ngram];
        most = std::max(most, count);
      }
    }
  }
  const auto length = static_cast<int64_t>(hypothesis.words.size());
  counts.output_length += length;
  counts.reference_length += nearest_length(length, lengths);
  for (size_t n = 0; n < allowed.size(); ++n) {
    counts.totals[n] += std::max<int64_t>(length - static_cast<int64_t>(n), 0);
    for (const auto& [ngram, count] : count_ngrams(hypothesis.text, hypothesis.words, n + 1)) {
      const auto found = allowed[n].find(ngram);
      if (found != allowed[n].end()) counts.matches[n] += std::min(count, found->second);
    }
  }
}

template <class... Args>
std::string format(const char* pattern, Args... args) {
  char buffer[256];
  std::snprintf(buffer, sizeof buffer, pattern, args...);
  return buffer;
}

}  // namespace

std::string tokenize_13a(std::string_view raw) {
  std::string text(raw);
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");  // before the next two: &amp;lt; becomes <
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
  std::string apart = " ";
  for (const char c : text) {
    if (stands_alone(c)) {
      apart += {' ', c, ' '};
    } else {
      apart.push_back(c);
    }
  }
  apart.push_back(' ');
  apart = rewrite_pairs(
      apart, [](char a, char b) { return !is_digit(a) && is_stop(b); },
      [](std::string& out, char a, char b) {
        out += {a, ' ', b, ' '};
      });
  apart = rewrite_pairs(
      apart, [](char a, char b) { return is_stop(a) && !is_digit(b); },
      [](std::string& out, char a, char b) {
        out += {' ', a, ' ', b};
      });
  apart = rewrite_pairs(
      apart, [](char a, char b) { return is_digit(a) && b == '-'; },
      [](std::string& out, char a, char b) {
        out += {a, ' ', b, ' '};
      });
  return join(split_words(apart));
}

std::string bleu_segment(std::string_view raw) {
  // sacreBLEU strips the end first: a dash before a final newline is no hyphenation.
  const std::vector<std::string_view> words = split_words(raw);
  if (words.empty()) return "";
  const char* end = words.back().data() + words.back().size();
  return tokenize_13a(raw.substr(0, static_cast<size_t>(end - raw.data())));
}

BleuScore bleu_of_counts(const BleuCounts& counts, bool effective_order) {
  BleuScore result{.score = 0, .precisions = std::vector<double>(kOrders), .brevity_penalty = 1, .counts = counts};
  const auto output = static_cast<double>(counts.output_length),
             reference = static_cast<double>(counts.reference_length);
  if (output < reference) result.brevity_penalty = output > 0 ? std::exp(1 - reference / output) : 0;
  if (std::all_of(counts.matches.begin(), counts.matches.end(), [](int64_t n) { return n == 0; })) return result;

  double unseen = 1;  // exponential smoothing: each order without a match counts half as much as the one before
  size_t order = kOrders;
  for (size_t n = 0; n < kOrders && counts.totals[n] > 0; ++n) {
    const auto matches = static_cast<double>(counts.matches[n]), total = static_cast<double>(counts.totals[n]);
    if (effective_order) order = n + 1;
    if (matches == 0) unseen *= 2;
    result.precisions[n] = matches > 0 ? 100 * matches / total : 100 / (unseen * total);
  }
  double log_sum = 0;
  for (size_t n = 0; n < order; ++n) {
    if (result.precisions[n] == 0) return result;
    log_sum += std::log(result.precisions[n]);
  }
  result.score = result.brevity_penalty * std::exp(log_sum / static_cast<double>(order));
  return result;
}

BleuScore corpus_bleu(std::span<const std::string> outputs, std::span<const std::vector<std::string>> references,
                      bool effective_order) {
  if (references.empty()) throw ConfigError("BLEU needs at least one list of references");
  for (const auto& list : references) {
    if (list.size() != outputs.size()) {
      throw ConfigError("BLEU: " + std::to_string(outputs.size()) + " outputs but " + std::to_string(list.size()) +
                        " references; expected one reference per line");
    }
  }
  BleuCounts counts;
  std::vector<std::string_view> of_segment(references.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (size_t r = 0; r < references.size(); ++r) of_segment[r] = references[r][i];
    add_segment(counts, outputs[i], of_segment);
  }
  return bleu_of_counts(counts, effective_order);
}

BleuScore corpus_bleu(std::span<const std::string> outputs, const std::vector<std::string>& references,
                      bool effective_order) {
  return corpus_bleu(outputs, std::span(&references, 1), effective_order);
}

std::string BleuScore::text() const {
  std::string line = format("BLEU = %.2f ", score);
  for (size_t n = 0; n < precisions.size(); ++n) line += format(n == 0 ? "%.1f" : "/%.1f", precisions[n]);
  const double ratio = counts.reference_length > 0
                           ? static_cast<double>(counts.output_length) / static_cast<double>(counts.reference_length)
                           : 0;
  return line + format(" (BP = %.3f ratio = %.3f hyp_len = %lld ref_len = %lld)", brevity_penalty, ratio,
                       static_cast<long long>(counts.output_length), static_cast<long long>(counts.reference_length));
}

}  // namespace qkv
