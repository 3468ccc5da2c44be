// A batch of token sequences, packed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "qkv/ops/ragged.h"

namespace qkv {

/// The ids of all sequences one after the other, and which belong to which sequence.
struct TokenBatch {
  std::vector<int64_t> ids;  // [T]
  Ragged batch;

  TokenBatch() = default;
  TokenBatch(std::vector<int64_t> packed, Ragged layout) : ids(std::move(packed)), batch(std::move(layout)) {}
  explicit TokenBatch(std::span<const std::vector<int64_t>> sequences) {
    std::vector<int64_t> lengths;
    for (const auto& s : sequences) {
      ids.insert(ids.end(), s.begin(), s.end());
      lengths.push_back(static_cast<int64_t>(s.size()));
    }
    batch = Ragged(lengths);
  }
};

}  // namespace qkv
