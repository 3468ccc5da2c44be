// Softmax and cross entropy over rows, compiled once per instruction set; rows are dealt out in fixed blocks.
#include "qkv/kernels/rowwise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "qkv/base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/rowwise.cc"
#include "hwy/foreach_target.h"
// After foreach_target: what follows is compiled once per target.
#include "qkv/kernels/vector_loop-inl.h"
#include "qkv/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

using V = FloatVec;
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

// y = e^(x - peak), Σ y returned; y null: the sum alone.
HWY_INLINE float exp_row(const float* x, float peak, float* y, int64_t n) {
  const FloatTag d;
  const V shift = hn::Set(d, peak);
  V s0 = hn::Zero(d), s1 = s0;
  int64_t i = 0;
  for (; i + 2 * kFloatLanes <= n; i += 2 * kFloatLanes) {
    const V a = exp_v(d, hn::Sub(hn::LoadU(d, x + i), shift));
    const V b = exp_v(d, hn::Sub(hn::LoadU(d, x + i + kFloatLanes), shift));
    s0 = hn::Add(s0, a);
    s1 = hn::Add(s1, b);
    if (!y) continue;
    hn::StoreU(a, d, y + i);
    hn::StoreU(b, d, y + i + kFloatLanes);
  }
  for_parts(n - i, [&](int64_t k, int64_t count) HWY_ATTR {
    const V a = exp_v(d, hn::Sub(load_n(x + i + k, count, kMinusInf), shift));
    s0 = hn::Add(s0, a);
    if (y) store_n(a, y + i + k, count);
  });
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1)));
}

// y = x·factor + offset.
HWY_INLINE void affine_row(const float* x, float factor, float offset, float* y, int64_t n) {
  const FloatTag d;
  const V a = hn::Set(d, factor), b = hn::Set(d, offset);
  map(
      n, y, [a, b](V u) HWY_ATTR { return hn::MulAdd(u, a, b); }, x);
}

HWY_INLINE int64_t row_length(const SoftmaxRows<float>& s, int64_t r) {
  return s.lens ? std::clamp<int64_t>(s.lens[r], 0, s.cols) : s.cols;
}

void softmax_block(const SoftmaxRows<float>& s, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    const float* x = s.x + r * s.cols;
    float* y = s.y + r * s.cols;
    const int64_t n = row_length(s, r);
    if (n > 0) {
      const float total = exp_row(x, reduce_max(n, x), y, n);
      const V factor = hn::Set(FloatTag(), 1.0f / total);
      map(
          n, y, [factor](V u) HWY_ATTR { return hn::Mul(u, factor); }, static_cast<const float*>(y));
    }
    std::fill(y + n, y + s.cols, 0.0f);
  }
}

void log_softmax_block(const SoftmaxRows<float>& s, int64_t begin, int64_t end) {
  const FloatTag d;
  for (int64_t r = begin; r < end; ++r) {
    const float* x = s.x + r * s.cols;
    float* y = s.y + r * s.cols;
    const int64_t n = row_length(s, r);
    if (n > 0) {
      const float peak = reduce_max(n, x);
      const V shift = hn::Set(d, peak), log_sum = hn::Set(d, std::log(exp_row(x, peak, nullptr, n)));
      // peak first: x - peak is exact where it matters
      map(
          n, y, [=](V u) HWY_ATTR { return hn::Sub(hn::Sub(u, shift), log_sum); }, x);
    }
    std::fill(y + n, y + s.cols, kMinusInf);
  }
}

void softmax_backward_block(const SoftmaxRowsBackward<float>& s, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    const float *y = s.y + r * s.cols, *d_y = s.d_y + r * s.cols;
    const float dot = reduce_sum(
        s.cols, [](V a, V b) HWY_ATTR { return hn::Mul(a, b); }, y, d_y);
    const V shift = hn::Set(FloatTag(), dot);
    map(
        s.cols, s.d_x + r * s.cols, [shift](V a, V b) HWY_ATTR { return hn::Mul(a, hn::Sub(b, shift)); }, y, d_y);
  }
}

void log_softmax_backward_block(const SoftmaxRowsBackward<float>& s, int64_t begin, int64_t end) {
  const FloatTag d;
  const V hidden = hn::Set(d, kMinusInf);
  const auto visible = [hidden](V a, V b) HWY_ATTR { return hn::IfThenZeroElse(hn::Eq(a, hidden), b); };
  for (int64_t r = begin; r < end; ++r) {
    const float *y = s.y + r * s.cols, *d_y = s.d_y + r * s.cols;
    const V total = hn::Set(d, reduce_sum(s.cols, visible, y, d_y));
    const auto slope = [&](V a, V b) HWY_ATTR { return visible(a, hn::NegMulAdd(exp_v(d, a), total, b)); };
    map(s.cols, s.d_x + r * s.cols, slope, y, d_y);
  }
}

HWY_INLINE bool counts(const CrossEntropy<float>& c, int64_t target) {
  return target != c.ignore_index && target >= 0 && target < c.V;
}

// d_logits of row r from e^(z - lse) already in d (times `factor`): w (p - ε/V), and the target's share off.
HWY_INLINE void finish_gradient(const CrossEntropy<float>& c, int64_t r, float factor, float* d) {
  const float w = c.d_loss ? c.d_loss[r] : c.d_scale;
  affine_row(d, w * factor, -w * c.smoothing / static_cast<float>(c.V), d, c.V);
  d[c.targets[r]] -= w * (1 - c.smoothing);
}

void cross_entropy_block(const CrossEntropy<float>& c, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    const float* z = c.logits + r * c.V;
    float* d = c.d_logits ? c.d_logits + r * c.V : nullptr;
    const int64_t target = c.targets[r];
    const bool used = counts(c, target);
    const float peak = reduce_max(c.V, z);
    const double z_target = used ? static_cast<double>(z[target]) : 0.0;
    double mean = 0;
    if (used && c.smoothing > 0 && c.loss)
      mean = static_cast<double>(reduce_sum(
                 c.V, [](V u) HWY_ATTR { return u; }, z)) /
             static_cast<double>(c.V);
    const float total = exp_row(z, peak, d, c.V);  // z may be gone after this
    const double lse = static_cast<double>(peak) + std::log(static_cast<double>(total));
    const double smooth = static_cast<double>(c.smoothing);
    if (c.lse) c.lse[r] = static_cast<float>(lse);
    if (c.loss) c.loss[r] = used ? static_cast<float>(lse - (1 - smooth) * z_target - smooth * mean) : 0.0f;
    if (d && used) finish_gradient(c, r, 1 / total, d);
    if (d && !used) std::fill(d, d + c.V, 0.0f);
  }
}

void cross_entropy_backward_block(const CrossEntropy<float>& c, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    float* d = c.d_logits + r * c.V;
    if (counts(c, c.targets[r])) {
      exp_row(c.logits + r * c.V, c.lse[r], d, c.V);
      finish_gradient(c, r, 1.0f, d);
    } else {
      std::fill(d, d + c.V, 0.0f);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {
namespace {

HWY_EXPORT(softmax_block);
HWY_EXPORT(log_softmax_block);
HWY_EXPORT(softmax_backward_block);
HWY_EXPORT(log_softmax_backward_block);
HWY_EXPORT(cross_entropy_block);
HWY_EXPORT(cross_entropy_backward_block);

// Rows of about 8,192 elements together: some 5 µs of work.
int64_t block_of(int64_t cols) { return std::max<int64_t>(1, 8192 / std::max<int64_t>(cols, 1)); }

}  // namespace

void softmax_rows(const SoftmaxRows<float>& s) {
  parallel_blocks(s.rows, block_of(s.cols), [&](int64_t b, int64_t e) {
    HWY_DYNAMIC_DISPATCH(softmax_block)(s, b, e);
  });
}

void log_softmax_rows(const SoftmaxRows<float>& s) {
  parallel_blocks(s.rows, block_of(s.cols), [&](int64_t b, int64_t e) {
    HWY_DYNAMIC_DISPATCH(log_softmax_block)(s, b, e);
  });
}

void softmax_rows_backward(const SoftmaxRowsBackward<float>& s) {
  parallel_blocks(s.rows, block_of(s.cols), [&](int64_t b, int64_t e) {
    HWY_DYNAMIC_DISPATCH(softmax_backward_block)(s, b, e);
  });
}

void log_softmax_rows_backward(const SoftmaxRowsBackward<float>& s) {
  parallel_blocks(s.rows, block_of(s.cols), [&](int64_t b, int64_t e) {
    HWY_DYNAMIC_DISPATCH(log_softmax_backward_block)(s, b, e);
  });
}

void cross_entropy(const CrossEntropy<float>& c) {
  parallel_blocks(c.rows, block_of(c.V), [&](int64_t b, int64_t e) {
    HWY_DYNAMIC_DISPATCH(cross_entropy_block)(c, b, e);
  });
}

void cross_entropy_backward(const CrossEntropy<float>& c) {
  parallel_blocks(c.rows, block_of(c.V), [&](int64_t b, int64_t e) {
    HWY_DYNAMIC_DISPATCH(cross_entropy_backward_block)(c, b, e);
  });
}

}  // namespace qkv::kernels
#endif
