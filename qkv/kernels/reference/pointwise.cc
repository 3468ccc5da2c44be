// The specification of the elementwise kernels: plain loops.
#include <cmath>

#include "qkv/kernels/dropout.h"
#include "qkv/kernels/pointwise.h"

namespace qkv::kernels::reference {
namespace {

constexpr double kInvSqrt2 = 0.70710678118654752440, kInvSqrt2Pi = 0.39894228040143267794;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double normal_cdf(double x) { return 0.5 * std::erfc(-x * kInvSqrt2); }

double value(Unary op, double x) {
  switch (op) {
    case Unary::relu:
      return x > 0 ? x : (x != x ? x : 0.0);
    case Unary::gelu:
      return x * normal_cdf(x);
    case Unary::tanh:
      return std::tanh(x);
    case Unary::sigmoid:
      return sigmoid(x);
    case Unary::exp:
      return std::exp(x);
  }
  return x;
}

// The derivative, from what saves_output says.
double slope(Unary op, double s) {
  switch (op) {
    case Unary::relu:
      return s > 0 ? 1.0 : 0.0;
    case Unary::gelu:
      return normal_cdf(s) + s * kInvSqrt2Pi * std::exp(-0.5 * s * s);
    case Unary::tanh:
      return 1 - s * s;
    case Unary::sigmoid:
      return s * (1 - s);
    case Unary::exp:
      return s;
  }
  return 1;
}

}  // namespace

template <class T>
void unary_forward(Unary op, const T* x, T* y, int64_t n) noexcept {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(value(op, static_cast<double>(x[i])));
}

template <class T>
void unary_backward(Unary op, const T* saved, const T* d_y, T* d_x, int64_t n) noexcept {
  for (int64_t i = 0; i < n; ++i)
    d_x[i] = static_cast<T>(slope(op, static_cast<double>(saved[i])) * static_cast<double>(d_y[i]));
}

template <class T>
void dropout_add(const DropoutRule& rule, const T* x, const T* residual, T* y, int64_t n) noexcept {
  for (int64_t i = 0; i < n; ++i) {
    const auto block = static_cast<uint64_t>(i / DropoutRule::kBlock);
    const bool kept =
        dropout_keeps(rule.seed, 0, block, static_cast<uint32_t>(i % DropoutRule::kBlock), rule.threshold);
    y[i] = (residual ? residual[i] : T(0)) + (kept ? x[i] * static_cast<T>(rule.keep_scale) : T(0));
  }
}

template <class T>
void dropout(const DropoutRule& rule, const T* x, T* y, int64_t n) noexcept {
  dropout_add<T>(rule, x, nullptr, y, n);
}

template <class T>
void add(const T* x, const T* y, T* z, int64_t n) noexcept {
  for (int64_t i = 0; i < n; ++i) z[i] = x[i] + y[i];
}

#define QKV_INSTANTIATE(T)                                                                 \
  template void unary_forward(Unary, const T*, T*, int64_t) noexcept;                      \
  template void unary_backward(Unary, const T*, const T*, T*, int64_t) noexcept;           \
  template void dropout(const DropoutRule&, const T*, T*, int64_t) noexcept;               \
  template void dropout_add(const DropoutRule&, const T*, const T*, T*, int64_t) noexcept; \
  template void add(const T*, const T*, T*, int64_t) noexcept;
QKV_INSTANTIATE(float)
QKV_INSTANTIATE(double)
#undef QKV_INSTANTIATE

}  // namespace qkv::kernels::reference
