// Learning and using the model of answer-like names.
#include "qkv/data/answer_spans.h"

#include <algorithm>
#include <cmath>

#include "qkv/base/utf8.h"

namespace qkv {
namespace {

constexpr int kPasses = 3;
constexpr double kRate = 0.1;
constexpr size_t kLookedBack = 8;  // words and marks before a name
constexpr int64_t kManyNames = 6, kManyWords = 3;

bool is_letter_or_digit(char32_t c) {
  constexpr char32_t kFirstLetter = 0xC0;
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c >= kFirstLetter;
}

/// Words in lower case and single marks; a number is "#".
std::vector<std::string> pieces_of(const std::u32string& text, int64_t begin, int64_t end) {
  std::vector<std::string> pieces;
  for (int64_t i = begin; i < end;) {
    const char32_t c = text[static_cast<size_t>(i)];
    if (c == ' ') {
      ++i;
      continue;
    }
    std::string piece;
    bool number = true;
    int64_t k = i;
    for (; k < end && is_letter_or_digit(text[static_cast<size_t>(k)]); ++k) {
      const char32_t x = text[static_cast<size_t>(k)];
      number = number && x >= '0' && x <= '9';
      append_utf8(piece, unicode_lower(x));
    }
    if (k == i) {
      append_utf8(piece, c);
      number = false;
      ++k;
    }
    pieces.push_back(number ? "#" : piece);
    i = k;
  }
  return pieces;
}

std::u32string part(const std::u32string& text, int64_t begin, int64_t end) {
  return text.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
}

}  // namespace

std::vector<AnswerSpans::Features> AnswerSpans::features_of(const std::u32string& text, const NamedSpans& names,
                                                            const std::u32string& own) const {
  constexpr int64_t kNearBefore = 80, kNearBehind = 16;
  std::vector<Features> all;
  for (size_t k = 0; k < names.names.size(); ++k) {
    const CharSpan span = names.names[k];
    const std::u32string name = part(text, span.begin, span.end);
    std::vector<std::string> before = pieces_of(text, std::max<int64_t>(0, span.begin - kNearBefore), span.begin);
    if (before.size() > kLookedBack) before.erase(before.begin(), before.end() - kLookedBack);
    const auto behind = pieces_of(text, span.end, std::min(static_cast<int64_t>(text.size()), span.end + kNearBehind));
    const std::string last = before.empty() ? "^" : before.back();
    const std::string last_but_one = before.size() < 2 ? "^" : before[before.size() - 2];
    size_t born = 0;  // how many pieces back; 0: not near
    for (size_t i = 0; i < before.size(); ++i) born = before[i] == "born" ? before.size() - i : born;
    const auto found = answers_.find(name);
    const int64_t times = found == answers_.end() ? 0 : found->second - (name == own ? 1 : 0);
    const auto words = static_cast<int64_t>(std::count(name.begin(), name.end(), U' ')) + 1;
    all.push_back({"before " + last, "before " + last_but_one + " " + last,
                   "behind " + (behind.empty() ? "$" : behind[0]),
                   "rank " + std::to_string(std::min<int64_t>(static_cast<int64_t>(k), kManyNames)),
                   "words " + std::to_string(std::min(words, kManyWords)), "born " + std::to_string(born),
                   times > 0 ? "known" : "unknown"});
  }
  return all;
}

std::vector<double> AnswerSpans::softmax_of(const std::vector<Features>& features) const {
  std::vector<double> p;
  for (const Features& f : features) {
    double score = 0;
    for (const std::string& name : f) {
      const auto w = weights_.find(name);
      score += w == weights_.end() ? 0 : w->second;
    }
    p.push_back(score);
  }
  if (p.empty()) return p;
  const double highest = *std::max_element(p.begin(), p.end());
  double total = 0;
  for (double& x : p) total += x = std::exp(x - highest);
  for (double& x : p) x /= total;
  return p;
}

AnswerSpans::AnswerSpans(std::span<const std::string> documents, std::span<const NamedSpans> names,
                         std::span<const Fact> facts) {
  std::map<std::u32string, size_t> titled;
  std::vector<std::u32string> texts;
  for (size_t i = 0; i < documents.size(); ++i) {
    texts.push_back(utf8_to_code_points(documents[i]));
    titled.emplace(part(texts.back(), 0, names[i].title), i);
  }
  for (const Fact& f : facts) ++answers_[utf8_to_code_points(f.place)];
  struct Example {
    std::vector<Features> features;
    std::vector<bool> right;
  };
  std::vector<Example> examples;
  for (const Fact& f : facts) {
    const auto at = titled.find(utf8_to_code_points(name_in_question(f.question)));
    if (at == titled.end()) continue;
    const std::u32string place = utf8_to_code_points(f.place);
    Example e;
    bool any = false;
    for (const CharSpan& s : names[at->second].names) {
      e.right.push_back(part(texts[at->second], s.begin, s.end) == place);
      any = any || e.right.back();
    }
    if (!any) continue;
    e.features = features_of(texts[at->second], names[at->second], place);
    examples.push_back(std::move(e));
  }
  learnt_from_ = static_cast<int64_t>(examples.size());
  for (int pass = 0; pass < kPasses; ++pass) {
    for (const Example& e : examples) {
      // d log Σ_right p / d score_i = p_i/Σ_right p (where i is right) - p_i
      const std::vector<double> p = softmax_of(e.features);
      double right = 0;
      for (size_t i = 0; i < p.size(); ++i) right += e.right[i] ? p[i] : 0;
      for (size_t i = 0; i < p.size(); ++i) {
        const double step = kRate * ((e.right[i] ? p[i] / right : 0) - p[i]);
        for (const std::string& name : e.features[i]) weights_[name] += step;
      }
    }
  }
}

std::vector<double> AnswerSpans::probabilities(const std::string& document, const NamedSpans& names) const {
  return softmax_of(features_of(utf8_to_code_points(document), names, {}));
}

}  // namespace qkv
