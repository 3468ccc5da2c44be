// What decoding found, as bytes for another process.
#pragma once

#include "qkv/dist/pack.h"
#include "qkv/models/decoding.h"

namespace qkv {

inline void pack(std::string& to, const Hypothesis& h) {
  pack(to, std::tie(h.tokens, h.log_probability, h.score, h.complete));
}
inline void unpack(std::string_view& from, Hypothesis& h) {
  unpack(from, h.tokens), unpack(from, h.log_probability), unpack(from, h.score), unpack(from, h.complete);
}

}  // namespace qkv
