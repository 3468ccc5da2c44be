// Sentences worth an alignment diagram, chosen from what a translator made of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qkv/tasks/translate/alignment.h"

namespace qkv {

/// What is known of one translated sentence.
struct LookedAt {
  int64_t index = 0;     // in its set
  double tokens = 0;     // of the source
  double backwards = 0;  // tokens gone back in the source for each one written
  double jump = 0;       // the longest single way back
  double sureness = 0;   // mean of the largest weights
  double bleu = 0;       // of this sentence alone
  bool ended = true;     // whether the translation ended before its length ran out
};

/// The figures that the weights give: backwards, jump and sureness.
LookedAt look_at(const AlignmentWeights& weights);

struct ChosenExample {
  int64_t index = 0;
  std::string why;  // "nearly in order", "the longest", …
};

/// At most n of them, each once: nearly in order, most out of order, the longest, the worst and the best translation,
/// the longest jump back, the least and the most certain, the shortest; then in the order of the set.
std::vector<ChosenExample> choose_examples(std::vector<LookedAt> all, int64_t n);

}  // namespace qkv
