// Which name in a document a question would ask for: learnt from the training questions and the documents about them.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "qkv/data/knowledge.h"
#include "qkv/data/named_spans.h"

namespace qkv {

/// A log-linear model p(name i of a document is the answer) ∝ exp Σ w over features of its neighbours: the words before
/// it, the mark after it, how far back "born" is, its place among the names, and whether some training answer is
/// spelt like it. Made from training pairs and documents alone; no draw, no threads: always the same.
class AnswerSpans {
 public:
  /// Learns from every fact whose name titles a document in which the place is one of the names.
  AnswerSpans(std::span<const std::string> documents, std::span<const NamedSpans> names, std::span<const Fact> facts);

  /// One probability per name of the document, summing to 1; nothing for a document without names.
  std::vector<double> probabilities(const std::string& document, const NamedSpans& names) const;
  /// How many facts it could learn from.
  int64_t learnt_from() const { return learnt_from_; }

 private:
  using Features = std::vector<std::string>;
  std::vector<Features> features_of(const std::u32string& text, const NamedSpans& names,
                                    const std::u32string& own) const;
  std::vector<double> softmax_of(const std::vector<Features>& features) const;

  std::map<std::string, double> weights_;
  std::map<std::u32string, int64_t> answers_;  // how many facts have that place
  int64_t learnt_from_ = 0;
};

}  // namespace qkv
