// A German-English corpus from a small grammar, so that translation and its word order can be studied without data.
#pragma once

#include <cstdint>
#include <string>

#include "qkv/base/rng.h"
#include "qkv/data/parallel_corpus.h"

namespace qkv {

/// A sentence and its translation.
struct GeneratedPair {
  std::string source, target;  // German, English
};

/// One sentence of the grammar: main clauses, questions, clauses with dass, weil, wenn … (verb last), relative
/// clauses, modal verbs, the perfect, separable verbs, adjectives with the endings of case, gender and number, number
/// words (dreiundzwanzig). The German sentence determines the English one.
GeneratedPair generate_pair(Rng& rng);

struct GeneratedTranslationOptions {
  uint64_t seed = 1;
  int64_t train = 10000, val = 500, test = 500;  // distinct pairs
};

/// Distinct pairs; which set a sentence may be in is decided by a hash of its German text, so none is in two, whatever
/// the seed or sizes. The test set is named "test".
ParallelCorpus generate_parallel_corpus(const GeneratedTranslationOptions& options);

}  // namespace qkv
