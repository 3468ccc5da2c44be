// What stands in for SentencePiece in a build without it (QKV_SENTENCEPIECE=OFF).
#include "qkv/base/error.h"
#include "qkv/data/sentencepiece_tokenizer.h"

namespace qkv {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error("this build has no SentencePiece (QKV_SENTENCEPIECE=OFF): " + what);
}

}  // namespace

const char* usual_tokenizer() { return "word"; }

std::shared_ptr<const Tokenizer> train_sentencepiece(std::span<const std::string>, const TokenizerOptions& options) {
  refuse("--tokenizer " + options.kind + " needs it; word and char do not");
}
std::shared_ptr<const Tokenizer> load_sentencepiece(const std::string& path, const std::string&) {
  refuse("it cannot read " + path);
}

}  // namespace qkv
