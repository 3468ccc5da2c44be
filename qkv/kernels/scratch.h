// Per-thread working memory that kernels reuse from call to call, so that no kernel allocates in steady state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace qkv::kernels::detail {

/// A 64-byte aligned float buffer that only grows. What it held before a resize is lost.
class Scratch {
 public:
  float* get(int64_t n) {
    if (n > size_) {
      data_.reset();
      data_.reset(static_cast<float*>(::operator new(static_cast<size_t>(n) * sizeof(float), std::align_val_t(64))));
      size_ = n;
    }
    return data_.get();
  }

 private:
  struct Free {
    void operator()(float* p) const { ::operator delete(p, std::align_val_t(64)); }
  };
  std::unique_ptr<float, Free> data_;
  int64_t size_ = 0;
};

}  // namespace qkv::kernels::detail
