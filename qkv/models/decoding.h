// Batched greedy and beam search over anything that extends sequences by one token.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "qkv/core/tensor.h"

namespace qkv {

/// A model in the middle of writing: one row per partial sequence. It starts with one row per source sentence.
class StepDecoder {
 public:
  virtual ~StepDecoder() = default;
  virtual int64_t rows() const = 0;
  /// Appends one token to every row and gives the scores of what may come next: [rows, V], before softmax.
  virtual Tensor step(std::span<const int64_t> tokens) = 0;
  /// Keeps rows[i] as row i. Rows may be repeated and dropped; those of one source stay together, sources in order.
  virtual void select(std::span<const int64_t> rows) = 0;
};

/// How search() looks for continuations.
struct SearchOptions {
  int64_t begin = 0, end = 0;             // the token before the first and the one after the last
  std::vector<int64_t> first = {};        // one per source, in place of begin: a prompt's last token
  int64_t beam = 1;                       // 1: greedy
  int64_t n_best = 1;                     // hypotheses returned for each source, at most beam
  double length_penalty = 0;              // α of score / ((5 + length)/6)^α; length counts the end token
  std::vector<int64_t> forced = {};       // what every output begins with, whatever the model would choose
  std::vector<int64_t> max_lengths = {};  // one per source, or a single one for all; the end token counts
};

/// One continuation that search() found.
struct Hypothesis {
  std::vector<int64_t> tokens;  // without begin and end
  double log_probability = 0;   // Σ log p, the end token included
  double score = 0;             // what hypotheses are ranked by
  bool complete = false;        // whether the end token was written before the length ran out
};

/// The best continuations for each source, best first. Results do not depend on how sources are batched beyond
/// rounding, nor on the number of threads; ties go to the smaller token. Throws ConfigError on options that make no
/// sense.
std::vector<std::vector<Hypothesis>> search(StepDecoder& decoder, const SearchOptions& options);

}  // namespace qkv
