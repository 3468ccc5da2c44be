// Plain text for language modelling: read whole, split once, cut into contiguous chunks.
#include "qkv/data/text_corpus.h"

#include <algorithm>

#include "qkv/base/error.h"
#include "qkv/base/rng.h"
#include "qkv/base/utf8.h"
#include "qkv/data/batching.h"
#include "qkv/data/text_file.h"

namespace qkv {
namespace {

std::vector<Chunk> cut(int64_t first, int64_t tokens, int64_t block) {
  if (block < 1) throw ConfigError("a chunk must hold at least 1 token, not " + std::to_string(block));
  if (tokens < 2) throw ConfigError("a text of " + std::to_string(tokens) + " tokens has nothing to predict");
  std::vector<Chunk> chunks;
  for (int64_t begin = first; begin < tokens - 1; begin += block) {
    chunks.push_back({begin, std::min(begin + block, tokens - 1)});
  }
  return chunks;
}

}  // namespace

TextCorpus split_text(const std::string& text, double val_share, const std::string& name) {
  if (!(val_share > 0 && val_share < 1)) throw ConfigError("the share for validation must be between 0 and 1");
  const std::vector<std::string_view> characters = utf8_characters(text);
  const auto at = static_cast<size_t>(static_cast<double>(characters.size()) * (1 - val_share));
  if (at < 1 || at + 2 > characters.size()) {
    throw IoError("cannot use " + name + ": " + std::to_string(characters.size()) +
                  " characters are too few for training and validation");
  }
  auto split = static_cast<size_t>(characters[at].data() - text.data());
  const size_t line_end = text.find('\n', split);
  if (line_end != std::string::npos && line_end + 2 < text.size()) split = line_end + 1;
  return {text.substr(0, split), text.substr(split)};
}

TextCorpus read_text_corpus(const std::string& path, double val_share) {
  const std::string raw = read_plain_or_gz(path);
  const std::vector<std::string> lines = split_lines(raw);
  std::string text;
  text.reserve(raw.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    if (first_invalid_utf8(lines[i]) >= 0) throw IoError(path + ":" + std::to_string(i + 1) + ": not UTF-8");
    text += lines[i];
    if (i + 1 < lines.size() || raw.ends_with('\n')) text += '\n';
  }
  return split_text(text, val_share, path);
}

std::vector<Chunk> plan_chunks(int64_t tokens, int64_t block, uint64_t seed, int64_t epoch) {
  const auto stream = static_cast<uint64_t>(epoch);
  Rng rng = Rng(seed).fork(stream);
  const int64_t most = std::clamp<int64_t>(tokens - 1, 1, std::max<int64_t>(block, 1));
  const std::vector<Chunk> in_order = cut(rng.below(most), tokens, block);
  std::vector<Chunk> chunks;
  for (const int64_t i : shuffled_indices(static_cast<int64_t>(in_order.size()), seed, stream)) {
    chunks.push_back(in_order[static_cast<size_t>(i)]);
  }
  return chunks;
}

std::vector<Chunk> chunks_in_order(int64_t tokens, int64_t block) { return cut(0, tokens, block); }

}  // namespace qkv
