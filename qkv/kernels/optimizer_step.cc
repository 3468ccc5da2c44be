// Optimizer updates in one pass over parameter, gradient and state, compiled once per instruction set.
#include "qkv/kernels/optimizer_step.h"

#include <cmath>

#include "qkv/base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/optimizer_step.cc"
#include "hwy/foreach_target.h"
// After foreach_target: what follows is compiled once per target.
#include "qkv/kernels/vector_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

void adamw_block(const AdamWRule& rule, const ParameterSlice<float>& s) {
  const FloatTag d;
  const auto set = [d](double x) HWY_ATTR { return hn::Set(d, static_cast<float>(x)); };
  const double t = static_cast<double>(rule.step);
  const auto rate = set(rule.lr / (1 - std::pow(rule.beta1, t)));
  const auto v_factor = set(1 / std::sqrt(1 - std::pow(rule.beta2, t)));
  const auto shrink = set(rule.l2 ? 1.0 : 1 - rule.lr * rule.weight_decay);
  const auto decay = set(rule.l2 ? rule.weight_decay : 0.0);
  const auto grad_scale = set(rule.grad_scale), eps = set(rule.eps);
  const auto beta1 = set(rule.beta1), rest1 = set(1 - rule.beta1), beta2 = set(rule.beta2), rest2 = set(1 - rule.beta2);
  for_parts(s.n, [&](int64_t i, int64_t count) HWY_ATTR {
    auto p = load_n(s.p + i, count);
    const auto g = hn::MulAdd(decay, p, hn::Mul(grad_scale, load_n(s.g + i, count)));
    const auto m = hn::MulAdd(beta1, load_n(s.m + i, count), hn::Mul(rest1, g));
    const auto v = hn::MulAdd(beta2, load_n(s.v + i, count), hn::Mul(hn::Mul(rest2, g), g));
    const auto root = hn::MulAdd(hn::Sqrt(v), v_factor, eps);
    p = hn::NegMulAdd(rate, hn::Div(m, root), hn::Mul(p, shrink));
    store_n(p, s.p + i, count);
    store_n(m, s.m + i, count);
    store_n(v, s.v + i, count);
  });
}

void sgd_block(const SgdRule& rule, const ParameterSlice<float>& s) {
  const FloatTag d;
  const auto set = [d](double x) HWY_ATTR { return hn::Set(d, static_cast<float>(x)); };
  const auto lr = set(rule.lr), decay = set(rule.weight_decay), grad_scale = set(rule.grad_scale);
  const auto momentum = set(rule.momentum), fresh = set(rule.first_step ? 1.0 : 1 - rule.dampening);
  const bool moves = rule.momentum != 0;
  for_parts(s.n, [&](int64_t i, int64_t count) HWY_ATTR {
    const auto p = load_n(s.p + i, count);
    auto g = hn::MulAdd(decay, p, hn::Mul(grad_scale, load_n(s.g + i, count)));
    if (moves) {
      auto m = hn::Mul(fresh, g);
      if (!rule.first_step) m = hn::MulAdd(momentum, load_n(s.m + i, count), m);
      store_n(m, s.m + i, count);
      g = rule.nesterov ? hn::MulAdd(momentum, m, g) : m;
    }
    store_n(hn::NegMulAdd(lr, g, p), s.p + i, count);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {
namespace {

HWY_EXPORT(adamw_block);
HWY_EXPORT(sgd_block);

template <class F>
void slices(const ParameterSlice<float>& all, const F& f) {
  constexpr int64_t kBlock = 16384;
  parallel_blocks(all.n, kBlock, [&](int64_t begin, int64_t end) {
    f(ParameterSlice<float>{.n = end - begin,
                            .p = all.p + begin,
                            .g = all.g + begin,
                            .m = all.m ? all.m + begin : nullptr,
                            .v = all.v ? all.v + begin : nullptr});
  });
}

}  // namespace

void adamw_step(const AdamWRule& rule, const ParameterSlice<float>& slice) {
  slices(slice, [&](const ParameterSlice<float>& s) { HWY_DYNAMIC_DISPATCH(adamw_block)(rule, s); });
}

void sgd_step(const SgdRule& rule, const ParameterSlice<float>& slice) {
  slices(slice, [&](const ParameterSlice<float>& s) { HWY_DYNAMIC_DISPATCH(sgd_block)(rule, s); });
}

}  // namespace qkv::kernels
#endif
