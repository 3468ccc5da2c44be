// Attention of one position to keys and values in pages: what decoding does for every token, layer and head.
#include <algorithm>

#include "qkv/kernels/attention/attention.h"
#include "qkv/kernels/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/attention/pages.cc"
#include "hwy/foreach_target.h"
// After foreach_target: what follows is compiled once per target.
#include "qkv/kernels/attention/products-inl.h"
#include "qkv/kernels/vector_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {
namespace {

// z[j] = scale · q·k_j for `count` rows of keys, four at a time so that their sums do not wait for each other.
HWY_INLINE void scores_of_page(const PagedQuery& p, const float* q, const float* k, int64_t count, float* z) {
  const F32 d;
  const int64_t whole = p.D / kLanes * kLanes;
  const auto finish = [&](Vec sum, const float* row) HWY_ATTR {
    float total = hn::GetLane(hn::SumOfLanes(d, sum));
    for (int64_t c = whole; c < p.D; ++c) total += q[c] * row[c];
    return p.scale * total;
  };
  int64_t j = 0;
  for (; j + 4 <= count; j += 4, k += 4 * p.k_stride) {
    Vec sum[4];
    QKV_UNROLL for (int n = 0; n < 4; ++n) sum[n] = hn::Zero(d);
    for (int64_t c = 0; c < whole; c += kLanes) {
      const Vec x = hn::LoadU(d, q + c);
      QKV_UNROLL for (int n = 0; n < 4; ++n) sum[n] = hn::MulAdd(x, hn::LoadU(d, k + n * p.k_stride + c), sum[n]);
    }
    QKV_UNROLL for (int n = 0; n < 4; ++n) z[j + n] = finish(sum[n], k + n * p.k_stride);
  }
  for (; j < count; ++j, k += p.k_stride) {
    Vec sum = hn::Zero(d);
    for (int64_t c = 0; c < whole; c += kLanes) sum = hn::MulAdd(hn::LoadU(d, q + c), hn::LoadU(d, k + c), sum);
    z[j] = finish(sum, k);
  }
}

// Calls fn(first key, its page, number of keys) for every page.
template <class Fn>
HWY_INLINE void for_each_page(const PagedQuery& p, const float* const* pages, const Fn& fn) {
  for (int64_t j = 0; j < p.keys; j += p.page_rows) fn(j, *pages++, std::min(p.page_rows, p.keys - j));
}

// out[0 … NV vectors) = factor · Σ_j w_j v_j; keys are summed in two turns, which do not wait for each other.
template <int NV>
HWY_INLINE void add_values(const PagedQuery& p, const float* w, float factor, int64_t column, float* out) {
  const F32 d;
  Vec even[NV], odd[NV];
  QKV_UNROLL for (int n = 0; n < NV; ++n) even[n] = odd[n] = hn::Zero(d);
  for_each_page(p, p.v_pages, [&](int64_t first, const float* page, int64_t count) HWY_ATTR {
    const float* v = page + p.v_offset + column;
    int64_t j = 0;
    for (; j + 2 <= count; j += 2, v += 2 * p.v_stride) {
      const Vec x = hn::Set(d, w[first + j]), y = hn::Set(d, w[first + j + 1]);
      QKV_UNROLL for (int n = 0; n < NV; ++n) {
        even[n] = hn::MulAdd(x, hn::LoadU(d, v + n * kLanes), even[n]);
        odd[n] = hn::MulAdd(y, hn::LoadU(d, v + p.v_stride + n * kLanes), odd[n]);
      }
    }
    if (j == count) return;
    const Vec x = hn::Set(d, w[first + j]);
    QKV_UNROLL for (int n = 0; n < NV; ++n) even[n] = hn::MulAdd(x, hn::LoadU(d, v + n * kLanes), even[n]);
  });
  QKV_UNROLL for (int n = 0; n < NV; ++n) {
    hn::StoreU(hn::Mul(hn::Add(even[n], odd[n]), hn::Set(d, factor)), d, out + n * kLanes);
  }
}

void attend_pages(const PagedQuery& p) {
  const F32 d;
  Scratch scratch;
  float* z = scratch.floats(p.keys + kLanes);
  for (int64_t h = 0; h < p.heads; ++h) {
    const float* q = p.q + h * p.D;
    float* out = p.out + h * p.Dv;
    for_each_page(p, p.k_pages, [&](int64_t first, const float* page, int64_t count) HWY_ATTR {
      scores_of_page(p, q, page + p.k_offset, count, z + first);
    });
    if (p.bias) {
      map(
          p.keys, z, [](Vec a, Vec b) HWY_ATTR { return hn::Add(a, b); }, static_cast<const float*>(z),
          p.bias + h * p.bias_stride);
    }
    const Vec max = hn::Set(d, reduce_max(p.keys, z)), unit = hn::Set(d, kLog2e);
    Vec sum = hn::Zero(d);
    std::fill(z + p.keys, z + p.keys + kLanes, -std::numeric_limits<float>::infinity());
    for (int64_t j = 0; j < p.keys; j += kLanes) {
      const Vec w = exp2(hn::Mul(hn::Sub(hn::LoadU(d, z + j), max), unit));
      sum = hn::Add(sum, w);
      hn::StoreU(w, d, z + j);
    }
    const float factor = p.keys > 0 ? 1.0f / hn::GetLane(hn::SumOfLanes(d, sum)) : 0.0f;
    int64_t c = 0;
    for (; c + 2 * kLanes <= p.Dv; c += 2 * kLanes) add_values<2>(p, z, factor, c, out + c);
    for (; c + kLanes <= p.Dv; c += kLanes) add_values<1>(p, z, factor, c, out + c);
    for (; c < p.Dv; ++c) {
      float total = 0;
      for_each_page(p, p.v_pages, [&](int64_t first, const float* page, int64_t count) HWY_ATTR {
        for (int64_t j = 0; j < count; ++j) total += z[first + j] * page[p.v_offset + j * p.v_stride + c];
      });
      out[c] = total * factor;
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {
HWY_EXPORT(attend_pages);
void attend_pages(const PagedQuery& query) { HWY_DYNAMIC_DISPATCH(attend_pages)(query); }
}  // namespace qkv::kernels
#endif
