// Elementwise kernels over contiguous arrays, dropout, and the sums that go with them.
#pragma once

#include <cstdint>

namespace qkv::kernels {

/// relu max(0,x); gelu x·Φ(x) (exact erf); tanh; sigmoid 1/(1+e^-x); silu x·sigmoid(x); exp.
enum class Unary : uint8_t { relu, gelu, tanh, sigmoid, silu, exp };

/// What unary_backward reads: forward's result y (tanh, sigmoid, exp, relu) or its input x (gelu, silu).
/// relu may be given either: both have the sign that matters.
constexpr bool saves_output(Unary op) { return op != Unary::gelu && op != Unary::silu; }

/// Which elements of a flat array are dropped. Element e is kept iff dropout_keeps(seed, 0, e / kBlock,
/// e % kBlock, threshold) of kernels/dropout.h, and then multiplied by keep_scale = 1/(1-p).
/// threshold 0 keeps everything.
struct DropoutRule {
  static constexpr int64_t kBlock = 4096;
  uint64_t seed = 0;
  uint32_t threshold = 0;
  float keep_scale = 1;
};

// Arrays below have n elements each. An output may be one of the inputs; otherwise they must not overlap.

/// y = op(x).
void unary_forward(Unary op, const float* x, float* y, int64_t n) noexcept;
/// d_x = op'(x) ⊙ d_y, from `saved` as saves_output says.
void unary_backward(Unary op, const float* saved, const float* d_y, float* d_x, int64_t n) noexcept;
/// y = mask ⊙ x · keep_scale. Its own backward: d_x = dropout(d_y).
void dropout(const DropoutRule& rule, const float* x, float* y, int64_t n) noexcept;
/// y = residual + mask ⊙ x · keep_scale.
void dropout_add(const DropoutRule& rule, const float* x, const float* residual, float* y, int64_t n) noexcept;

/// y += a·x.
void axpy(float a, const float* x, float* y, int64_t n) noexcept;
/// y = a·x.
void scale(float a, const float* x, float* y, int64_t n) noexcept;
/// z = x + y.
void add(const float* x, const float* y, float* z, int64_t n) noexcept;
/// z = x - y.
void subtract(const float* x, const float* y, float* z, int64_t n) noexcept;
/// z = x ⊙ y.
void multiply(const float* x, const float* y, float* z, int64_t n) noexcept;
/// z += x ⊙ y.
void multiply_add(const float* x, const float* y, float* z, int64_t n) noexcept;
/// Σ x, Σ x², Σ x·y: blocks of a fixed size summed in a fixed order, so the bits do not depend on threads.
double sum(const float* x, int64_t n) noexcept;
double squared_norm(const float* x, int64_t n) noexcept;
double dot(const float* x, const float* y, int64_t n) noexcept;

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
void axpy(T a, const T* x, T* y, int64_t n) noexcept;
template <class T>
void scale(T a, const T* x, T* y, int64_t n) noexcept;
template <class T>
void add(const T* x, const T* y, T* z, int64_t n) noexcept;
template <class T>
void subtract(const T* x, const T* y, T* z, int64_t n) noexcept;
template <class T>
void multiply(const T* x, const T* y, T* z, int64_t n) noexcept;
template <class T>
void multiply_add(const T* x, const T* y, T* z, int64_t n) noexcept;
template <class T>
double sum(const T* x, int64_t n) noexcept;
template <class T>
double squared_norm(const T* x, int64_t n) noexcept;
template <class T>
double dot(const T* x, const T* y, int64_t n) noexcept;
}  // namespace reference

}  // namespace qkv::kernels
