// One optimizer update over a contiguous parameter array, in one pass.
#pragma once

#include <cstdint>

namespace qkv::kernels {

/// AdamW with decoupled weight decay, as torch.optim.AdamW; t = step counts from 1. With g = grad_scale · grad:
///   p -= lr·weight_decay·p;  m = β1 m + (1-β1) g;  v = β2 v + (1-β2) g²
///   p -= lr/(1-β1ᵗ) · m / (√v/√(1-β2ᵗ) + eps)
/// Adam with L2 (torch.optim.Adam) when l2 is set: g += weight_decay·p instead of the first line.
struct AdamWRule {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
  int64_t step = 1;
  double grad_scale = 1;  // gradient clipping folded in
  bool l2 = false;
};

/// SGD as torch.optim.SGD. With g = grad_scale · grad + weight_decay · p and a momentum buffer v:
///   v = g on the first step, else v = momentum·v + (1-dampening)·g;  p -= lr·(nesterov ? g + momentum·v : v)
/// momentum 0 needs no buffer: p -= lr·g.
struct SgdRule {
  double lr = 1e-2, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, first_step = false;
  double grad_scale = 1;
};

/// One parameter array with its gradient and state, n elements each. SGD uses m alone (null without momentum).
template <class T>
struct ParameterSlice {
  int64_t n = 0;
  T* p = nullptr;
  const T* g = nullptr;
  T* m = nullptr;
  T* v = nullptr;
};

void adamw_step(const AdamWRule& rule, const ParameterSlice<float>& slice);
void sgd_step(const SgdRule& rule, const ParameterSlice<float>& slice);

// The specification: plain loops, for float and double.
namespace reference {
template <class T>
void adamw_step(const AdamWRule& rule, const ParameterSlice<T>& slice) noexcept;
template <class T>
void sgd_step(const SgdRule& rule, const ParameterSlice<T>& slice) noexcept;
}  // namespace reference

// f64 takes the specification itself.
inline void adamw_step(const AdamWRule& rule, const ParameterSlice<double>& slice) {
  reference::adamw_step(rule, slice);
}
inline void sgd_step(const SgdRule& rule, const ParameterSlice<double>& slice) { reference::sgd_step(rule, slice); }

}  // namespace qkv::kernels
