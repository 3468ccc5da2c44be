// The normalisers on whole rows of scores, per SIMD target: lanes are queries, so every row is one column.
#if defined(QKV_KERNELS_ATTENTION_NORMALISERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_ATTENTION_NORMALISERS_INL_H_
#undef QKV_KERNELS_ATTENTION_NORMALISERS_INL_H_
#else
#define QKV_KERNELS_ATTENTION_NORMALISERS_INL_H_
#endif

#include "qkv/kernels/attention/values-inl.h"
#include "qkv/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

// One vector of queries over all keys of their tile: entry y at z + y * kTileQ, hidden ones -inf.
struct Column {
  float* z;
  int64_t keys;

  template <class Fn>
  HWY_INLINE void each(Fn&& fn) const {
    for (int64_t y = 0; y < keys; ++y) fn(z + y * kTileQ, y);
  }
};

// The largest score, and which lanes hold a NaN: their weights will be NaN.
struct Peak {
  Vec max;
  hn::Mask<F32> nan;
};
HWY_INLINE Peak peak_of(const Column& c) {
  const F32 d;
  Vec max = hn::Set(d, kNegInf), sum = hn::Zero(d);
  c.each([&](const float* at, int64_t) HWY_ATTR {
    const Vec z = hn::Load(d, at);
    max = hn::IfThenElse(hn::Gt(z, max), z, max);
    sum = hn::IfThenElse(hn::IsNaN(z), z, sum);
  });
  return {max, hn::IsNaN(sum)};
}

// τ with Σ max(0, y - τ) = 1 for y = z - max: Newton's method from the left never oversteps, and stops exactly.
HWY_INLINE Vec sparsemax_threshold(const Column& c, Vec max) {
  const F32 d;
  Vec tau = hn::Set(d, -1.0f);
  for (int step = 0; step < 100; ++step) {
    Vec sum = hn::Zero(d), count = hn::Zero(d);
    c.each([&](const float* at, int64_t) HWY_ATTR {
      const Vec y = hn::Sub(hn::Load(d, at), max);
      const auto in = hn::Gt(y, tau);
      sum = hn::Add(sum, hn::IfThenElseZero(in, y));
      count = hn::Add(count, hn::IfThenElseZero(in, hn::Set(d, 1.0f)));
    });
    const Vec next = hn::Div(hn::Sub(sum, hn::Set(d, 1.0f)), count);
    const auto better = hn::Gt(next, tau);
    if (hn::AllFalse(d, better)) break;
    tau = hn::IfThenElse(better, next, tau);
  }
  return tau;
}

// τ with Σ max(0, y - τ)² = 1 for y = (z - max)/2, by Newton's method from the left.
HWY_INLINE Vec entmax15_threshold(const Column& c, Vec max) {
  const F32 d;
  const Vec half = hn::Set(d, 0.5f), one = hn::Set(d, 1.0f);
  Vec tau = hn::Set(d, -1.0f);
  for (int step = 0; step < 100; ++step) {
    Vec sum = hn::Zero(d), squares = hn::Zero(d);
    c.each([&](const float* at, int64_t) HWY_ATTR {
      const Vec y = hn::Sub(hn::Mul(half, hn::Sub(hn::Load(d, at), max)), tau);
      const Vec x = hn::IfThenElseZero(hn::Gt(y, hn::Zero(d)), y);
      sum = hn::Add(sum, x);
      squares = hn::MulAdd(x, x, squares);
    });
    const Vec next = hn::MulAdd(hn::Div(hn::Sub(squares, one), sum), half, tau);
    const auto better = hn::Gt(next, hn::Add(tau, hn::Set(d, 2e-8f)));
    if (hn::AllFalse(d, better)) break;
    tau = hn::IfThenElse(better, next, tau);
  }
  return tau;
}

// What turns scores into weights, one value per query; the public `lse` follows from it.
struct Level {
  Vec from;    // softmax: the maximum; sparsemax, entmax15: the maximum, for accuracy; hard: the maximum
  Vec tau;     // sparsemax, entmax15: the threshold relative to `from`
  Vec factor;  // softmax: 1/Σ; hard: 1/ties; else 1
  Vec lse;     // as in AttentionOutputs
  hn::Mask<F32> nan;
};

HWY_INLINE Level level_of(Normaliser normaliser, const Column& c) {
  const F32 d;
  const Peak peak = peak_of(c);
  const Vec none = hn::Set(d, kNegInf), one = hn::Set(d, 1.0f);
  const auto empty = hn::Eq(peak.max, none);
  Level l{hn::IfThenZeroElse(empty, peak.max), hn::Zero(d), one, peak.max, peak.nan};
  if (normaliser == Normaliser::softmax) {
    Vec sum = hn::Zero(d);
    c.each([&](const float* at, int64_t) HWY_ATTR { sum = hn::Add(sum, exp2(hn::Sub(hn::Load(d, at), l.from))); });
    l.factor = hn::Div(one, sum);
    l.lse = hn::MulAdd(hn::Set(d, kLn2), l.from, log_v(d, sum));
  } else if (normaliser == Normaliser::sparsemax) {
    l.tau = sparsemax_threshold(c, l.from);
    l.lse = hn::Add(l.tau, l.from);
  } else if (normaliser == Normaliser::entmax15) {
    l.tau = entmax15_threshold(c, l.from);
    l.lse = hn::MulAdd(l.from, hn::Set(d, 0.5f), l.tau);
  } else {
    Vec ties = hn::Zero(d);
    c.each([&](const float* at, int64_t)
               HWY_ATTR { ties = hn::Add(ties, hn::IfThenElseZero(hn::Eq(hn::Load(d, at), l.from), one)); });
    l.factor = hn::Div(one, ties);
  }
  l.lse = hn::IfThenElse(empty, none, l.lse);
  l.lse = hn::IfThenElse(peak.nan, hn::Div(hn::Zero(d), hn::Zero(d)), l.lse);
  return l;
}

// p of one vector of scores. `root` receives the factor g of the gradient: dz = g (dp - common).
template <Normaliser kN>
HWY_INLINE Vec weight(const Level& l, Vec z, Vec* root) {
  const F32 d;
  const Vec zero = hn::Zero(d), one = hn::Set(d, 1.0f);
  const auto hidden = hn::Eq(z, hn::Set(d, kNegInf));
  Vec y = hn::Sub(z, l.from), p;
  if constexpr (kN == Normaliser::softmax) {
    p = hn::Mul(exp2(y), l.factor);
    if (root) *root = p;
  } else if constexpr (kN == Normaliser::sparsemax) {
    y = hn::Sub(y, l.tau);
    const auto in = hn::Gt(y, zero);
    p = hn::IfThenElseZero(in, y);
    if (root) *root = hn::IfThenElseZero(in, one);
  } else if constexpr (kN == Normaliser::entmax15) {
    y = hn::NegMulAdd(hn::Set(d, -0.5f), y, hn::Sub(zero, l.tau));
    y = hn::IfThenElseZero(hn::Gt(y, zero), y);
    p = hn::Mul(y, y);
    if (root) *root = y;
  } else {
    p = hn::IfThenElseZero(hn::Eq(y, zero), l.factor);
    if (root) *root = zero;
  }
  p = hn::IfThenElse(l.nan, hn::Div(zero, zero), p);
  if (root && kN != Normaliser::hard) *root = hn::IfThenElse(l.nan, p, *root);
  return hn::IfThenZeroElse(hidden, p);
}

// What every dp loses, from Σ g dp and Σ g: their quotient where the weights sum to 1, so that dz sums to 0.
template <Normaliser kN>
HWY_INLINE Vec common_gradient(Vec sum, Vec total) {
  return hn::Div(sum, total);
}

// Calls fn with the normaliser as a compile-time constant.
template <class Fn>
HWY_INLINE void with_normaliser(Normaliser n, Fn&& fn) {
  switch (n) {
    case Normaliser::softmax:
      return fn(std::integral_constant<Normaliser, Normaliser::softmax>());
    case Normaliser::sparsemax:
      return fn(std::integral_constant<Normaliser, Normaliser::sparsemax>());
    case Normaliser::entmax15:
      return fn(std::integral_constant<Normaliser, Normaliser::entmax15>());
    case Normaliser::hard:
      return fn(std::integral_constant<Normaliser, Normaliser::hard>());
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
