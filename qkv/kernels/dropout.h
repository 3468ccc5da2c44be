// Dropout decisions from a counter: no stored masks, the same for any thread count and tile shape.
#pragma once

#include <cstdint>

#include "qkv/base/rng.h"

namespace qkv::kernels {

/// A row's 32-bit key; elements of the row are then hashed with 32-bit arithmetic only, which vectorises.
inline uint32_t dropout_row_key(uint64_t seed, uint64_t plane, uint64_t row) {
  return static_cast<uint32_t>(mix64(seed ^ mix64(plane * 0x9E3779B97F4A7C15ull + row)));
}

/// 32 scattered bits for element j of a row.
inline uint32_t dropout_bits(uint32_t row_key, uint32_t j) {
  uint32_t x = row_key + j * 0x9E3779B9u;
  x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
  x = (x ^ (x >> 13)) * 0xC2B2AE35u;
  return x ^ (x >> 16);
}

/// p in [0, 1) as an integer threshold: an element is dropped iff its bits < threshold.
inline uint32_t dropout_threshold(double p) { return static_cast<uint32_t>(p * 4294967296.0); }

/// Attention weights take 16 bits each, so that two neighbours share a hash: those of weight j of a row are the lower
/// half of dropout_bits(row_key, j / 2) for an even j and the upper half for an odd one, in the upper half of a word.
inline uint32_t weight_dropout_bits(uint32_t row_key, uint32_t j) {
  const uint32_t both = dropout_bits(row_key, j / 2);
  return j % 2 == 0 ? both << 16 : both & 0xFFFF0000u;
}

/// The threshold for them: p to the nearest 1/65536, but neither 0 nor 1 unless it is 0.
inline uint32_t weight_dropout_threshold(double p) {
  if (p == 0) return 0;
  const double steps = p * 65536 + 0.5;
  return static_cast<uint32_t>(steps < 1 ? 1 : steps > 65535 ? 65535 : steps) << 16;
}

inline bool weight_dropout_keeps(uint64_t seed, uint64_t plane, uint64_t row, uint32_t j, uint32_t threshold) {
  return weight_dropout_bits(dropout_row_key(seed, plane, row), j) >= threshold;
}

inline bool dropout_keeps(uint64_t seed, uint64_t plane, uint64_t row, uint32_t j, uint32_t threshold) {
  return dropout_bits(dropout_row_key(seed, plane, row), j) >= threshold;
}

}  // namespace qkv::kernels
