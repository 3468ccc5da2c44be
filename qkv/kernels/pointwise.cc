// Elementwise kernels.
#include "qkv/kernels/pointwise.h"

namespace qkv::kernels {
void unary_forward(Unary op, const float* x, float* y, int64_t n) noexcept { reference::unary_forward(op, x, y, n); }
void unary_backward(Unary op, const float* saved, const float* d_y, float* d_x, int64_t n) noexcept {
  reference::unary_backward(op, saved, d_y, d_x, n);
}
void dropout(const DropoutRule& rule, const float* x, float* y, int64_t n) noexcept {
  reference::dropout(rule, x, y, n);
}
void dropout_add(const DropoutRule& rule, const float* x, const float* residual, float* y, int64_t n) noexcept {
  reference::dropout_add(rule, x, residual, y, n);
}
void axpy(float a, const float* x, float* y, int64_t n) noexcept { reference::axpy(a, x, y, n); }
void scale(float a, const float* x, float* y, int64_t n) noexcept { reference::scale(a, x, y, n); }
void add(const float* x, const float* y, float* z, int64_t n) noexcept { reference::add(x, y, z, n); }
void subtract(const float* x, const float* y, float* z, int64_t n) noexcept { reference::subtract(x, y, z, n); }
void multiply(const float* x, const float* y, float* z, int64_t n) noexcept { reference::multiply(x, y, z, n); }
void multiply_add(const float* x, const float* y, float* z, int64_t n) noexcept { reference::multiply_add(x, y, z, n); }
double sum(const float* x, int64_t n) noexcept { return reference::sum(x, n); }
double squared_norm(const float* x, int64_t n) noexcept { return reference::squared_norm(x, n); }
double dot(const float* x, const float* y, int64_t n) noexcept { return reference::dot(x, y, n); }
}  // namespace qkv::kernels
