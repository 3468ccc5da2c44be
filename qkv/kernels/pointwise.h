// Elementwise kernels over contiguous arrays, and dropout.
#pragma once

#include <cstdint>

namespace qkv::kernels {

/// relu max(0,x); gelu x·Φ(x) (exact erf); tanh; sigmoid 1/(1+e^-x); exp.
enum class Unary : uint8_t { relu, gelu, tanh, sigmoid, exp };

/// What unary_backward reads: forward's result y (tanh, sigmoid, exp, relu) or its input x (gelu).
/// relu may be given either: both have the sign that matters.
constexpr bool saves_output(Unary op) { return op != Unary::gelu; }

/// Which elements of a flat array are dropped. Element e is kept iff dropout_keeps(seed, 0, e / kBlock,
/// e % kBlock, threshold) of kernels/dropout.h, and then multiplied by keep_scale = 1/(1-p).
/// threshold 0 keeps everything.
struct DropoutRule {
  static constexpr int64_t kBlock = 4096;
  uint64_t seed = 0;
  uint32_t threshold = 0;
  float keep_scale = 1;
};

// Arrays below have n elements each. An output may be one of the inputs; otherwise they must not overlap. What throws
// is starting the threads, before anything is computed.

/// y = op(x).
void unary_forward(Unary op, const float* x, float* y, int64_t n);
/// d_x = op'(x) ⊙ d_y, from `saved` as saves_output says.
void unary_backward(Unary op, const float* saved, const float* d_y, float* d_x, int64_t n);
/// y = mask ⊙ x · keep_scale. Its own backward: d_x = dropout(d_y).
void dropout(const DropoutRule& rule, const float* x, float* y, int64_t n);
/// y = residual + mask ⊙ x · keep_scale.
void dropout_add(const DropoutRule& rule, const float* x, const float* residual, float* y, int64_t n);

/// z = x + y.
void add(const float* x, const float* y, float* z, int64_t n);
// The specification: plain loops, for float and double.
namespace reference {
template <class T>
void unary_forward(Unary op, const T* x, T* y, int64_t n) noexcept;
template <class T>
void unary_backward(Unary op, const T* saved, const T* d_y, T* d_x, int64_t n) noexcept;
template <class T>
void dropout(const DropoutRule& rule, const T* x, T* y, int64_t n) noexcept;
template <class T>
void dropout_add(const DropoutRule& rule, const T* x, const T* residual, T* y, int64_t n) noexcept;
template <class T>
void add(const T* x, const T* y, T* z, int64_t n) noexcept;
}  // namespace reference

// f64 takes the specification itself.
inline void unary_forward(Unary op, const double* x, double* y, int64_t n) { reference::unary_forward(op, x, y, n); }
inline void unary_backward(Unary op, const double* saved, const double* d_y, double* d_x, int64_t n) {
  reference::unary_backward(op, saved, d_y, d_x, n);
}
inline void dropout(const DropoutRule& rule, const double* x, double* y, int64_t n) {
  reference::dropout(rule, x, y, n);
}
inline void dropout_add(const DropoutRule& rule, const double* x, const double* residual, double* y, int64_t n) {
  reference::dropout_add(rule, x, residual, y, n);
}
inline void add(const double* x, const double* y, double* z, int64_t n) { reference::add(x, y, z, n); }

}  // namespace qkv::kernels
