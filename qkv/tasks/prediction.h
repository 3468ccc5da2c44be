// What a trained model is asked for, and what it answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "qkv/models/sampling.h"

namespace qkv {

/// How an answer is searched for.
struct DecodeOptions {
  int64_t beam = 1;           // hypotheses kept; 1 is greedy
  double length_penalty = 0;  // α of score / ((5 + length)/6)^α
  int64_t max_length = 0;     // in tokens; 0: the task's own limit
  int64_t n_best = 1;         // answers for each input
  bool align = false;         // also which source word each target word looked at
  /// Sample tokens instead of searching: for tasks that continue a text.
  std::optional<SampleOptions> sample = {};
};

/// One answer.
struct Prediction {
  std::string text = {};
  double score = 0;                        // log probability
  std::string alignment = {};              // "0-0 1-2 …": source word - target word, where asked for
  std::optional<double> probability = {};  // of an answer that is one of a few: shown beside it
};

}  // namespace qkv
