// Making the tokens of a text, and the file that keeps them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/data/token_stream.h"
#include "qkv/io/byte_source.h"

namespace qkv {

/// Lines with their end marks; what comes after the last line end without one.
std::vector<int64_t> encode_stretch(const Tokenizer& tokenizer, std::string_view text);
/// Whether the last line of a part lacks its line end.
bool last_line_is_open(const PlainText& text, TextPart part);

/// Bytes of a token: 2 where they suffice, else 4; least significant first.
int token_width(const Tokenizer& tokenizer);
int64_t unpack_token(const char* bytes, int width);
/// Gives the tokens of a part to `sink`, piece after piece in their order; encoded on all threads.
void make_tokens(const PlainText& text, TextPart part, const Tokenizer& tokenizer,
                 const std::function<void(std::string_view)>& sink);

/// Where token_stream() keeps them.
std::string token_path(const PlainText& text, TextPart part, const Tokenizer& tokenizer, const TokenOptions& options);
struct TokenFile {
  std::shared_ptr<const ByteSource> source;
  int64_t tokens = 0;
};
/// The file of that path, made where there is none, or none that is whole and of this text.
TokenFile token_file(const PlainText& text, TextPart part, const Tokenizer& tokenizer, const std::string& path);

}  // namespace qkv
