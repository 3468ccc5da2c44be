// Drawing the next token from a model's scores: temperature, top-k, top-p.
#pragma once

#include <cstdint>
#include <span>

#include "qkv/base/rng.h"

namespace qkv {

/// How sample_token() draws.
struct SampleOptions {
  double temperature = 1;  // scores are divided by this; 0: always the highest
  int64_t top_k = 0;       // only the k highest scores; 0: all
  double top_p = 1;        // of those, the fewest whose probabilities reach p together
  uint64_t seed = 1;
};

/// The index drawn from softmax(scores/temperature), cut to the k highest and then to the smallest set of them that
/// holds p of what they have. Ties go to the smaller index. One draw of rng per call, also at temperature 0. Throws
/// ConfigError on a negative temperature or k, or p outside (0, 1].
int64_t sample_token(std::span<const float> scores, const SampleOptions& options, Rng& rng);

}  // namespace qkv
