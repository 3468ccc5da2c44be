// exp2, tanh and the dropout decision on vectors, per SIMD target.
#if defined(QKV_KERNELS_ATTENTION_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_ATTENTION_MATH_INL_H_
#undef QKV_KERNELS_ATTENTION_MATH_INL_H_
#else
#define QKV_KERNELS_ATTENTION_MATH_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using I32 = hn::RebindToSigned<F32>;
using U32 = hn::RebindToUnsigned<F32>;
using Vec = hn::Vec<F32>;
using IntVec = hn::Vec<I32>;

constexpr float kLog2e = 1.44269504088896340736f;
constexpr float kLn2 = 0.69314718055994530942f;

// t = n + r with n an integer and |r| ≤ 1/2: adding 1.5·2²³ rounds, and its low bits then hold n + 127.
struct Split {
  Vec r, scale;  // scale = 2ⁿ for -127 < n < 128
};
HWY_INLINE Split split(Vec t) {
  const F32 d;
  const Vec magic = hn::Set(d, 12583039.0f);
  const Vec sum = hn::Add(t, magic);
  const Vec n = hn::Sub(sum, magic);
  return {hn::Sub(t, n), hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(U32(), sum)))};
}

// (2^r - 1) / r on [-1/2, 1/2], with 2^r good to 1e-7.
HWY_INLINE Vec exp2_slope(Vec r) {
  const F32 d;
  Vec y = hn::MulAdd(r, hn::Set(d, 0.001326472731307149f), hn::Set(d, 0.009671512991189957f));
  y = hn::MulAdd(y, r, hn::Set(d, 0.05550733581185341f));
  y = hn::MulAdd(y, r, hn::Set(d, 0.24022242426872253f));
  return hn::MulAdd(y, r, hn::Set(d, 0.6931470036506653f));
}

// 2^t for t < 127; 0 below -126 and for -inf; exactly 1 at 0; NaN stays NaN.
HWY_INLINE Vec exp2(Vec t) {
  const F32 d;
  const Vec one = hn::Set(d, 1.0f);
#if HWY_TARGET <= HWY_AVX3
  // Two instructions split t into floor and fraction and put the exponent back, underflow and -inf included;
  // the polynomial is 2^r on [0, 1), good to 1e-7.
  const Vec r{_mm512_reduce_ps(t.raw, 0x09)};
  Vec y = hn::MulAdd(r, hn::Set(d, 0.0018671302823349833f), hn::Set(d, 0.009017029777169228f));
  y = hn::MulAdd(y, r, hn::Set(d, 0.05579991266131401f));
  y = hn::MulAdd(y, r, hn::Set(d, 0.24016444385051727f));
  y = hn::MulAdd(y, r, hn::Set(d, 0.6931512951850891f));
  return Vec{_mm512_scalef_ps(hn::MulAdd(y, r, one).raw, t.raw)};
#else
  const Split s = split(t);
  const Vec y = hn::MulAdd(exp2_slope(s.r), s.r, one);
  return hn::IfThenZeroElse(hn::Lt(t, hn::Set(d, -126.0f)), hn::Mul(y, s.scale));
#endif
}

// tanh x = e / (e + 2) with e = exp(2x) - 1 formed without cancellation, so small x keep their relative accuracy.
HWY_INLINE Vec tanh(Vec x) {
  const F32 d;
  const Vec far = hn::Set(d, 26.0f), one = hn::Set(d, 1.0f);
  Vec t = hn::Mul(x, hn::Set(d, 2 * kLog2e));
  t = hn::IfThenElse(hn::Gt(t, far), far, t);  // compared, not clamped by Min: NaN stays NaN
  t = hn::IfThenElse(hn::Lt(t, hn::Neg(far)), hn::Neg(far), t);
  const Split s = split(t);
  const Vec e = hn::MulAdd(hn::Mul(exp2_slope(s.r), s.r), s.scale, hn::Sub(s.scale, one));
  return hn::Div(e, hn::Add(e, hn::Set(d, 2.0f)));
}

// Lanes whose weights j and j + 1 are kept, j even: weight_dropout_bits(row_key, j) ≥ threshold, as in
// kernels/dropout.h; threshold ≥ 1.
struct KeptPair {
  // Written out, since the compiler's own would not belong to the target.
  HWY_INLINE KeptPair() : even(hn::FirstN(F32(), 0)), odd(hn::FirstN(F32(), 0)) {}
  HWY_INLINE KeptPair(hn::Mask<F32> even_, hn::Mask<F32> odd_) : even(even_), odd(odd_) {}
  hn::Mask<F32> even, odd;
};
HWY_INLINE KeptPair kept_pair(hn::Vec<U32> row_keys, int64_t j, uint32_t threshold) {
  const U32 du;
  hn::Vec<U32> x = hn::Add(row_keys, hn::Set(du, static_cast<uint32_t>(j / 2) * 0x9E3779B9u));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(du, 0x85EBCA6Bu));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<13>(x)), hn::Set(du, 0xC2B2AE35u));
  x = hn::Xor(x, hn::ShiftRight<16>(x));
  const hn::Vec<U32> most = hn::Set(du, threshold - 1);
  return {hn::RebindMask(F32(), hn::Gt(hn::ShiftLeft<16>(x), most)), hn::RebindMask(F32(), hn::Gt(x, most))};
}

// The same for one weight.
HWY_INLINE hn::Mask<F32> kept_lanes(hn::Vec<U32> row_keys, int64_t j, uint32_t threshold) {
  const KeptPair pair = kept_pair(row_keys, j, threshold);
  return j % 2 == 0 ? pair.even : pair.odd;
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
