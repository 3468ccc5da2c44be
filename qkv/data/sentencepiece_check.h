// Whether the bytes of a SentencePiece model are safe to hand to its library, which trusts them.
#pragma once

#include <string_view>

namespace qkv {

/// Throws IoError with what is wrong: a piece that is empty or not UTF-8, a score that is not finite, a table of
/// normalisation that leads outside itself.
void check_sentencepiece_model(std::string_view model);

}  // namespace qkv
