// Counter-based random numbers: a value depends on (seed, counter) alone, never on threads or order.
#pragma once

#include <cstdint>

namespace qkv {

/// SplitMix64's finaliser: a bijection of 64-bit words that scatters every bit.
constexpr uint64_t mix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

/// A stream of random numbers whose whole state is two words, so a checkpoint can store it.
class Rng {
 public:
  explicit Rng(uint64_t seed = 0, uint64_t counter = 0) : seed_(seed), counter_(counter) {}

  uint64_t next() { return mix64(seed_ ^ mix64(counter_++)); }
  /// Uniform in [0, 1), 53 bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  /// Uniform in {0, …, n-1}; n ≥ 1.
  int64_t below(int64_t n) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<int64_t>((static_cast<Wide>(next()) * static_cast<uint64_t>(n)) >> 64);
  }
  /// Standard normal (Box-Muller; two counters per draw).
  double normal();

  /// An independent stream for a named purpose; does not advance this one.
  Rng fork(uint64_t stream) const { return Rng(mix64(seed_ + mix64(stream ^ 0xA0761D6478BD642Full))); }

  uint64_t seed() const { return seed_; }
  uint64_t counter() const { return counter_; }

 private:
  uint64_t seed_, counter_;
};

}  // namespace qkv
