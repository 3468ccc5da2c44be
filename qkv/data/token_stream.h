// The tokens of a text, read by their numbers: computed from its characters, kept in memory, or in a file made once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/data/plain_text.h"
#include "qkv/data/tokenizer.h"

namespace qkv {

/// Lines joined by their end marks (kEndId), a last line without a line end too.
class TokenStream {
 public:
  virtual ~TokenStream() = default;
  virtual int64_t size() const = 0;
  /// Tokens [begin, end). Throws IoError when a file it reads from was changed.
  virtual std::vector<int64_t> read(int64_t begin, int64_t end) const = 0;
};

/// Of a part of a text in a file with more characters than this, subwords and words are kept in a token file.
inline constexpr int64_t kLargeText = int64_t{1} << 24;

struct TokenOptions {
  std::string name = "all";    // of the part, for the name of its token file
  std::string folder = {};     // of token files; empty: beside the text
  int64_t large = kLargeText;  // characters
};

/// Where every character is a token, they are computed whenever they are read. Else they are made once: in memory for a
/// part that is not large or whose text is in memory, else in FOLDER/TEXT.NAME-KEY.tokens, where KEY stands for
/// tokenizer and part. Such a file is used again by whoever needs the same tokens; one that is damaged, or of a text
/// that has changed, is made again, and a note says so (qkv/data/preparation.h). Throws IoError.
std::shared_ptr<const TokenStream> token_stream(std::shared_ptr<const PlainText> text, TextPart part,
                                                std::shared_ptr<const Tokenizer> tokenizer,
                                                const TokenOptions& options = {});

/// Learns a vocabulary from a part of a text. Characters and words are counted in all of it; SentencePiece learns from
/// at most `most` characters: of a longer part, from stretches spread evenly over it, and a note says so.
std::shared_ptr<const Tokenizer> train_tokenizer(const PlainText& text, TextPart part, const TokenizerOptions& options,
                                                 int64_t most = kLargeText);

}  // namespace qkv
