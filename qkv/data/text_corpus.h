// Plain text for language modelling: read whole, split once, cut into contiguous chunks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace qkv {

/// The beginning of a text for training, its end for validation.
struct TextCorpus {
  std::string train, val;
};

/// Any UTF-8 file, plain or gzip; \r\n becomes \n and a byte-order mark is dropped. The last `val_share` of the
/// characters, from the next line's beginning where there is one, is for validation.
/// Throws IoError: cannot be read, "PATH:LINE: not UTF-8", too short to split; ConfigError for a share outside (0, 1).
TextCorpus read_text_corpus(const std::string& path, double val_share = 0.1);
TextCorpus split_text(const std::string& text, double val_share, const std::string& name);

/// Tokens [begin, end) of the stream are the input, [begin + 1, end + 1) the target.
struct Chunk {
  int64_t begin = 0, end = 0;
  bool operator==(const Chunk&) const = default;
};

/// Cuts a stream of `tokens` into chunks of at most `block` inputs that cover every target but those before a first
/// cut, which moves by (seed, epoch) so that no place is always a chunk's beginning; the order is shuffled by the same.
/// Throws ConfigError when block < 1 or tokens < 2.
std::vector<Chunk> plan_chunks(int64_t tokens, int64_t block, uint64_t seed, int64_t epoch);
/// All of the stream in order, from the first token: for validation.
std::vector<Chunk> chunks_in_order(int64_t tokens, int64_t block);

}  // namespace qkv
