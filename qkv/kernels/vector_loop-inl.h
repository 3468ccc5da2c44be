// Loops over arrays of any length for Highway kernels: whole vectors first, the rest through a small buffer.
#if defined(QKV_KERNELS_VECTOR_LOOP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_VECTOR_LOOP_INL_H_
#undef QKV_KERNELS_VECTOR_LOOP_INL_H_
#else
#define QKV_KERNELS_VECTOR_LOOP_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;
constexpr int64_t kFloatLanes = static_cast<int64_t>(hn::MaxLanes(FloatTag()));

/// The first n < lanes elements at p; the other lanes are `fill`.
HWY_INLINE FloatVec load_part(const float* p, int64_t n, float fill = 0.0f) {
  HWY_ALIGN float buffer[kFloatLanes];
  hn::Store(hn::Set(FloatTag(), fill), FloatTag(), buffer);
  std::copy_n(p, n, buffer);
  return hn::Load(FloatTag(), buffer);
}

/// Stores the first n < lanes elements of v at p.
HWY_INLINE void store_part(FloatVec v, float* p, int64_t n) {
  HWY_ALIGN float buffer[kFloatLanes];
  hn::Store(v, FloatTag(), buffer);
  std::copy_n(buffer, n, p);
}

/// y[i] = f(x[i]…) for i < n.
template <class F, class... X>
HWY_INLINE void map(int64_t n, float* y, const F& f, const X*... x) {
  const FloatTag d;
  int64_t i = 0;
  for (; i + kFloatLanes <= n; i += kFloatLanes) hn::StoreU(f(hn::LoadU(d, x + i)...), d, y + i);
  if (i < n) store_part(f(load_part(x + i, n - i)...), y + i, n - i);
}

/// Calls f(i, count) for i = 0, lanes, 2·lanes …: count is lanes, or for the last part what is left.
/// f loads and stores through load_n and store_n.
template <class F>
HWY_INLINE void for_parts(int64_t n, const F& f) {
  int64_t i = 0;
  for (; i + kFloatLanes <= n; i += kFloatLanes) f(i, kFloatLanes);
  if (i < n) f(i, n - i);
}
HWY_INLINE FloatVec load_n(const float* p, int64_t count, float fill = 0.0f) {
  return count == kFloatLanes ? hn::LoadU(FloatTag(), p) : load_part(p, count, fill);
}
HWY_INLINE void store_n(FloatVec v, float* p, int64_t count) {
  if (count == kFloatLanes)
    hn::StoreU(v, FloatTag(), p);
  else
    store_part(v, p, count);
}

/// Σ_i f(x[i]…) over i < n with four running vectors; f(0…) must be 0.
template <class F, class... X>
HWY_INLINE float reduce_sum(int64_t n, const F& f, const X*... x) {
  const FloatTag d;
  constexpr int64_t L = kFloatLanes;
  FloatVec s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L) {
    s0 = hn::Add(s0, f(hn::LoadU(d, x + i)...));
    s1 = hn::Add(s1, f(hn::LoadU(d, x + i + L)...));
    s2 = hn::Add(s2, f(hn::LoadU(d, x + i + 2 * L)...));
    s3 = hn::Add(s3, f(hn::LoadU(d, x + i + 3 * L)...));
  }
  for (; i + L <= n; i += L) s0 = hn::Add(s0, f(hn::LoadU(d, x + i)...));
  if (i < n) s1 = hn::Add(s1, f(load_part(x + i, n - i)...));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

/// max_i x[i]; -inf for n = 0.
HWY_INLINE float reduce_max(int64_t n, const float* x) {
  const FloatTag d;
  constexpr int64_t L = kFloatLanes;
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  FloatVec m0 = hn::Set(d, kLowest), m1 = m0;
  int64_t i = 0;
  for (; i + 2 * L <= n; i += 2 * L) {
    m0 = hn::Max(m0, hn::LoadU(d, x + i));
    m1 = hn::Max(m1, hn::LoadU(d, x + i + L));
  }
  for (; i + L <= n; i += L) m0 = hn::Max(m0, hn::LoadU(d, x + i));
  if (i < n) m1 = hn::Max(m1, load_part(x + i, n - i, kLowest));
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(m0, m1)));
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
