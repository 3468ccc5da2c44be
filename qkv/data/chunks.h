// A stream of tokens cut into contiguous chunks, in order or shuffled.
#pragma once

#include <cstdint>
#include <vector>

namespace qkv {

/// Tokens [begin, end) of the stream are the input, [begin + 1, end + 1) the target.
struct Chunk {
  int64_t begin = 0, end = 0;
  bool operator==(const Chunk&) const = default;
};

/// Chunks of at most `block` inputs of a stream of `tokens`. Throws ConfigError when block < 1 or tokens < 2.
class Chunks {
 public:
  /// All of the stream in order, from the first token: for validation.
  Chunks(int64_t tokens, int64_t block) : Chunks(tokens, block, 0) {}
  /// One epoch of training: every target but those before a first cut, which moves by (seed, epoch) so that no place is
  /// always a chunk's beginning. In order until shuffle() is called.
  Chunks(int64_t tokens, int64_t block, uint64_t seed, int64_t epoch);
  /// Puts them into an order that depends on (seed, epoch) alone. It takes 4 bytes per chunk.
  void shuffle(uint64_t seed, int64_t epoch);

  int64_t size() const { return (tokens_ - 1 - first_ + block_ - 1) / block_; }
  Chunk operator[](int64_t i) const;

 private:
  Chunks(int64_t tokens, int64_t block, int64_t first);

  int64_t tokens_, block_, first_;
  std::vector<uint32_t> order_;  // empty: as they come
};

}  // namespace qkv
