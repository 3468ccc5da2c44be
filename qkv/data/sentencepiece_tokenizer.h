// SentencePiece models as tokenizers: trained in memory, stored as their own bytes.
#pragma once

#include "qkv/data/tokenizer.h"

namespace qkv {

/// The tokenizer for translations: "unigram", or "word" in a build without SentencePiece.
const char* usual_tokenizer();

/// options.kind is "unigram" or "bpe". Throws ConfigError.
std::shared_ptr<const Tokenizer> train_sentencepiece(std::span<const std::string> lines,
                                                     const TokenizerOptions& options);
/// Throws IoError naming the file when it is no SentencePiece model with qkv's four marks in front.
std::shared_ptr<const Tokenizer> load_sentencepiece(const std::string& path, const std::string& kind);

/// Throws ConfigError unless 0 <= id < size.
void check_token_id(int64_t id, int64_t size);

}  // namespace qkv
