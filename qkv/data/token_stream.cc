// The streams of tokens: from the text itself, and from where its tokens are kept.
#include "qkv/data/token_stream.h"

#include <algorithm>
#include <filesystem>

#include "qkv/base/error.h"
#include "qkv/data/token_file.h"

namespace qkv {
namespace {

class CharacterStream final : public TokenStream {
 public:
  CharacterStream(std::shared_ptr<const PlainText> text, TextPart part, std::shared_ptr<const Tokenizer> tokenizer)
      : text_(std::move(text)), tokenizer_(std::move(tokenizer)), part_(part), open_(last_line_is_open(*text_, part)) {}

  int64_t size() const override { return part_.size() + (open_ ? 1 : 0); }
  std::vector<int64_t> read(int64_t begin, int64_t end) const override {
    const std::string text = text_->characters({part_.begin + begin, std::min(part_.begin + end, part_.end)});
    std::vector<int64_t> ids = encode_stretch(*tokenizer_, text);
    if (end > part_.size()) ids.push_back(kEndId);
    return ids;
  }

 private:
  std::shared_ptr<const PlainText> text_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  TextPart part_;
  bool open_;
};

class KeptStream final : public TokenStream {
 public:
  /// Numbers of `width` bytes.
  KeptStream(std::shared_ptr<const ByteSource> source, int64_t tokens, int width)
      : source_(std::move(source)), tokens_(tokens), width_(width) {}

  int64_t size() const override { return tokens_; }
  std::vector<int64_t> read(int64_t begin, int64_t end) const override {
    const auto width = static_cast<uint64_t>(width_);
    const std::string bytes = source_->read(static_cast<uint64_t>(begin) * width,
                                            static_cast<uint64_t>(std::max<int64_t>(end - begin, 0)) * width);
    std::vector<int64_t> ids(bytes.size() / width);
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = unpack_token(bytes.data() + i * width, width_);
    return ids;
  }

 private:
  std::shared_ptr<const ByteSource> source_;
  int64_t tokens_;
  int width_;
};

}  // namespace

std::shared_ptr<const TokenStream> token_stream(std::shared_ptr<const PlainText> text, TextPart part,
                                                std::shared_ptr<const Tokenizer> tokenizer,
                                                const TokenOptions& options) {
  if (tokenizer->by_characters()) {
    return std::make_shared<CharacterStream>(std::move(text), part, std::move(tokenizer));
  }
  const int width = token_width(*tokenizer);
  if (text->in_file() && part.size() > options.large) {
    auto [source, tokens] = token_file(*text, part, *tokenizer, token_path(*text, part, *tokenizer, options));
    return std::make_shared<KeptStream>(std::move(source), tokens, width);
  }
  std::string bytes;
  make_tokens(*text, part, *tokenizer, [&](std::string_view more) { bytes += more; });
  const auto tokens = static_cast<int64_t>(bytes.size()) / width;
  return std::make_shared<KeptStream>(ByteSource::of_text(std::move(bytes)), tokens, width);
}

}  // namespace qkv
