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

inline bool dropout_keeps(uint64_t seed, uint64_t plane, uint64_t row, uint32_t j, uint32_t threshold) {
  return dropout_bits(dropout_row_key(seed, plane, row), j) >= threshold;
}

}  // namespace qkv::kernels
