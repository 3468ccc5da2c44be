// The specification of the optimizer updates: plain loops.
#include <cmath>

#include "qkv/kernels/optimizer_step.h"

namespace qkv::kernels::reference {

template <class T>
void adamw_step(const AdamWRule& rule, const ParameterSlice<T>& s) noexcept {
  const double t = static_cast<double>(rule.step);
  const double correction1 = 1 - std::pow(rule.beta1, t), correction2 = 1 - std::pow(rule.beta2, t);
  for (int64_t i = 0; i < s.n; ++i) {
    double p = static_cast<double>(s.p[i]), g = rule.grad_scale * static_cast<double>(s.g[i]);
    if (rule.l2)
      g += rule.weight_decay * p;
    else
      p -= rule.lr * rule.weight_decay * p;
    const double m = rule.beta1 * static_cast<double>(s.m[i]) + (1 - rule.beta1) * g;
    const double v = rule.beta2 * static_cast<double>(s.v[i]) + (1 - rule.beta2) * g * g;
    p -= rule.lr / correction1 * m / (std::sqrt(v) / std::sqrt(correction2) + rule.eps);
    s.p[i] = static_cast<T>(p);
    s.m[i] = static_cast<T>(m);
    s.v[i] = static_cast<T>(v);
  }
}

template <class T>
void sgd_step(const SgdRule& rule, const ParameterSlice<T>& s) noexcept {
  for (int64_t i = 0; i < s.n; ++i) {
    const double p = static_cast<double>(s.p[i]);
    double g = rule.grad_scale * static_cast<double>(s.g[i]) + rule.weight_decay * p;
    if (rule.momentum != 0) {
      const double m = rule.first_step ? g : rule.momentum * static_cast<double>(s.m[i]) + (1 - rule.dampening) * g;
      s.m[i] = static_cast<T>(m);
      g = rule.nesterov ? g + rule.momentum * m : m;
    }
    s.p[i] = static_cast<T>(p - rule.lr * g);
  }
}

template void adamw_step(const AdamWRule&, const ParameterSlice<float>&) noexcept;
template void adamw_step(const AdamWRule&, const ParameterSlice<double>&) noexcept;
template void sgd_step(const SgdRule&, const ParameterSlice<float>&) noexcept;
template void sgd_step(const SgdRule&, const ParameterSlice<double>&) noexcept;

}  // namespace qkv::kernels::reference
