// Per-thread working memory that kernels reuse from call to call, so that no kernel allocates in steady state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace qkv::kernels {

struct FreeFloats {
  void operator()(float* p) const { ::operator delete[](p, std::align_val_t{64}); }
};
using Floats = std::unique_ptr<float[], FreeFloats>;
/// n floats, 64-byte aligned, uninitialised. Throws std::bad_alloc, also for more than memory could ever hold.
Floats new_floats(int64_t n);

/// A buffer that only grows. What it held before it grew is lost.
class GrowingBuffer {
 public:
  /// At least n floats. Throws std::bad_alloc; the buffer is then empty.
  float* get(int64_t n) {
    if (n > size_) grow(n);
    return data_.get();
  }

 private:
  void grow(int64_t n);

  Floats data_;
  int64_t size_ = 0;
};

/// Memory of the calling thread that lives until the scope ends and is reused by the next scope.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  /// n floats, 64-byte aligned, uninitialised, with room for one vector read past the end. Throws std::bad_alloc.
  float* floats(int64_t n);

 private:
  size_t block_;  // where the scope started
  int64_t used_;
};

}  // namespace qkv::kernels
