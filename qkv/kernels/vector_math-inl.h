// Vector exp, log, tanh, sigmoid and the normal distribution for Highway kernels, to about two units in
// the last place (the polynomials are minimax fits; their own errors are below 1e-7).
// Include it inside a file that Highway's foreach_target compiles once per instruction set.
#if defined(QKV_KERNELS_VECTOR_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_VECTOR_MATH_INL_H_
#undef QKV_KERNELS_VECTOR_MATH_INL_H_
#else
#define QKV_KERNELS_VECTOR_MATH_INL_H_
#endif

#include <limits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// e^x. Results below 2.4e-38 become 0, above the largest number inf; NaN stays NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_v(D d, V x) {
  const hn::RebindToUnsigned<D> du;  // n may be anything when x is NaN or huge: unsigned sums wrap
  // e^x = 2^n e^r with n = round(x / ln 2), |r| ≤ ln 2 / 2
  const auto n = hn::NearestInt(hn::Mul(x, hn::Set(d, 1.44269504088896341f)));
  const V nf = hn::ConvertTo(d, n);
  V r = hn::NegMulAdd(nf, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(nf, hn::Set(d, -2.12194440e-4f), r);
  // e^r = 1 + r + r² q(r)
  V q = hn::MulAdd(hn::Set(d, 0.0013901295606046915f), r, hn::Set(d, 0.008363170549273491f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.04166685417294502f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.16666577756404877f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.5f));
  const V e = hn::Add(hn::MulAdd(q, hn::Mul(r, r), r), hn::Set(d, 1.0f));
  // 2^n by way of 2^(n-1)·2, so that n = 128 does not overflow too early
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::BitCast(du, n), hn::Set(du, 126u))));
  const V y = hn::Mul(hn::Mul(e, power), hn::Set(d, 2.0f));
  const V top =
      hn::IfThenElse(hn::Gt(x, hn::Set(d, 88.7228317f)), hn::Set(d, std::numeric_limits<float>::infinity()), y);
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -86.6433868f)), top);
}

/// log x for finite positive x (normal numbers); -inf at 0, NaN below, inf at inf.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log_v(D d, V x) {
  const hn::RebindToSigned<D> di;
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, x);
  // x = 2^n m with m in [√½, √2)
  const auto n = hn::ShiftRight<23>(hn::BitCast(di, hn::Sub(bits, hn::Set(du, 0x3F3504F3u))));
  const V m = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(hn::BitCast(du, n))));
  const V nf = hn::ConvertTo(d, n);
  const V one = hn::Set(d, 1.0f);
  const V f = hn::Sub(m, one);
  // log m = 2 atanh(s), s = (m-1)/(m+1), written as f - s (f - s² q) to keep the leading term exact
  const V s = hn::Div(f, hn::Add(m, one));
  const V z = hn::Mul(s, s);
  V q = hn::MulAdd(hn::Set(d, 0.23331360518932343f), z, hn::Set(d, 0.28550782799720764f));
  q = hn::MulAdd(q, z, hn::Set(d, 0.4000012278556824f));
  q = hn::MulAdd(q, z, hn::Set(d, 0.6666666865348816f));
  const V log_m = hn::NegMulAdd(s, hn::NegMulAdd(z, q, f), f);
  V y = hn::MulAdd(nf, hn::Set(d, 0.693359375f), hn::MulAdd(nf, hn::Set(d, -2.12194440e-4f), log_m));
  const V inf = hn::Set(d, std::numeric_limits<float>::infinity());
  y = hn::IfThenElse(hn::Eq(x, inf), inf, y);
  y = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(inf), y);
  const V nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
  return hn::IfThenElse(hn::Ge(x, hn::Zero(d)), y, nan);
}

/// tanh x.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh_v(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V t = hn::Abs(x);
  // |x| ≥ 0.625: 1 - 2/(e^{2|x|} + 1)
  const V far = hn::Sub(one, hn::Div(hn::Set(d, 2.0f), hn::Add(exp_v(d, hn::Add(t, t)), one)));
  // else x + x³ q(x²)
  const V z = hn::Mul(x, x);
  V q = hn::MulAdd(hn::Set(d, -0.006096933968365192f), z, hn::Set(d, 0.02099735103547573f));
  q = hn::MulAdd(q, z, hn::Set(d, -0.05385095253586769f));
  q = hn::MulAdd(q, z, hn::Set(d, 0.13332770764827728f));
  q = hn::MulAdd(q, z, hn::Set(d, -0.333333283662796f));
  const V near = hn::MulAdd(hn::Mul(q, z), x, x);
  return hn::IfThenElse(hn::Lt(t, hn::Set(d, 0.625f)), near, hn::CopySign(far, x));
}

/// 1 / (1 + e^-x).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigmoid_v(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, exp_v(d, hn::Neg(x))));
}

/// e^{-a·b} for a·b ≥ 0. The rounding error of the product is carried along: it would be multiplied by a·b otherwise.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_of_minus_product_v(D d, V a, V b) {
  const V product = hn::Mul(a, b);
  const V lost = hn::IfThenElseZero(hn::Lt(product, hn::Set(d, 200.0f)), hn::MulSub(a, b, product));
  const V e = exp_v(d, hn::Neg(product));
  return hn::NegMulAdd(lost, e, e);
}

/// erfc t for t ≥ 0, given gauss = e^{-t²}.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V erfc_positive_v(D d, V t, V gauss) {
  // erfc t = e^{-t²} u p(u), u = 1/(1 + 0.4 t)
  const V one = hn::Set(d, 1.0f);
  const V u = hn::Div(one, hn::MulAdd(t, hn::Set(d, 0.4f), one));
  V p = hn::MulAdd(hn::Set(d, 0.041253115981817245f), u, hn::Set(d, -0.1403196007013321f));
  p = hn::MulAdd(p, u, hn::Set(d, 0.08398802578449249f));
  p = hn::MulAdd(p, u, hn::Set(d, 0.0879635140299797f));
  p = hn::MulAdd(p, u, hn::Set(d, 0.07975704222917557f));
  p = hn::MulAdd(p, u, hn::Set(d, 0.19339297711849213f));
  p = hn::MulAdd(p, u, hn::Set(d, 0.20188765227794647f));
  p = hn::MulAdd(p, u, hn::Set(d, 0.2264430969953537f));
  p = hn::MulAdd(p, u, hn::Set(d, 0.22563423216342926f));
  return hn::Mul(hn::Mul(p, u), gauss);
}

/// Φ(x), the normal distribution function, with e^{-x²/2} left in `gauss`.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V normal_cdf_v(D d, V x, V& gauss) {
  const V t = hn::Mul(hn::Abs(x), hn::Set(d, 0.70710678118654752f));
  gauss = exp_of_minus_product_v(d, x, hn::Mul(x, hn::Set(d, 0.5f)));
  const V tail = hn::Mul(hn::Set(d, 0.5f), erfc_positive_v(d, t, gauss));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(hn::Set(d, 1.0f), tail));
}

/// x Φ(x).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu_v(D d, V x) {
  V gauss;
  return hn::Mul(x, normal_cdf_v(d, x, gauss));
}

/// d/dx x Φ(x) = Φ(x) + x φ(x).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu_slope_v(D d, V x) {
  V gauss;
  const V cdf = normal_cdf_v(d, x, gauss);
  return hn::MulAdd(hn::Mul(x, hn::Set(d, 0.39894228040143268f)), gauss, cdf);
}

/// max(0, x); NaN stays NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V relu_v(D d, V x) {
  return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
