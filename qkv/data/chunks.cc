// Where each chunk begins, and the order of an epoch.
#include "qkv/data/chunks.h"

#include <algorithm>
#include <limits>
#include <string>

#include "qkv/base/error.h"
#include "qkv/base/rng.h"
#include "qkv/data/batching.h"

namespace qkv {
namespace {

int64_t first_cut(int64_t tokens, int64_t block, uint64_t seed, int64_t epoch) {
  Rng rng = Rng(seed).fork(static_cast<uint64_t>(epoch));
  return rng.below(std::clamp<int64_t>(tokens - 1, 1, std::max<int64_t>(block, 1)));
}

}  // namespace

Chunks::Chunks(int64_t tokens, int64_t block, int64_t first) : tokens_(tokens), block_(block), first_(first) {
  if (block < 1) throw ConfigError("a chunk must hold at least 1 token, not " + std::to_string(block));
  if (tokens < 2) throw ConfigError("a text of " + std::to_string(tokens) + " tokens has nothing to predict");
  if (size() > std::numeric_limits<uint32_t>::max()) {
    throw ConfigError("a text of " + std::to_string(tokens) + " tokens has too many chunks of " +
                      std::to_string(block) + "; use a larger --block");
  }
}

Chunks::Chunks(int64_t tokens, int64_t block, uint64_t seed, int64_t epoch)
    : Chunks(tokens, block, first_cut(tokens, block, seed, epoch)) {}

void Chunks::shuffle(uint64_t seed, int64_t epoch) {
  order_ = shuffled_indices<uint32_t>(size(), seed, static_cast<uint64_t>(epoch));
}

Chunk Chunks::operator[](int64_t i) const {
  const int64_t at = order_.empty() ? i : int64_t{order_[static_cast<size_t>(i)]};
  const int64_t begin = first_ + at * block_;
  return {begin, std::min(begin + block_, tokens_ - 1)};
}

}  // namespace qkv
