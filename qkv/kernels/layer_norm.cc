// Layer norm and sums over rows, compiled once per instruction set. Sums over many rows are made block by block,
// blocks of a size that depends on the shape alone, and the blocks are added in order.
#include <algorithm>
#include <cmath>

#include "qkv/base/parallel.h"
#include "qkv/kernels/rowwise.h"
#include "qkv/kernels/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/layer_norm.cc"
#include "hwy/foreach_target.h"
// After foreach_target: what follows is compiled once per target.
#include "qkv/kernels/vector_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

using V = FloatVec;

void layer_norm_block(const LayerNorm<float>& l, int64_t begin, int64_t end) {
  const FloatTag d;
  const float per_col = 1.0f / static_cast<float>(l.cols);
  for (int64_t r = begin; r < end; ++r) {
    const int64_t at = r * l.cols;
    const float* s = l.x + at;
    if (l.residual) {
      map(
          l.cols, l.sum + at, [](V a, V b) HWY_ATTR { return hn::Add(a, b); }, s, l.residual + at);
      s = l.sum + at;
    }
    const float mean = reduce_sum(
                           l.cols, [](V a) HWY_ATTR { return a; }, s) *
                       per_col;
    const V shift = hn::Set(d, mean);
    // Σ (s - mean)²: the zeros that fill the last vector would count as mean² each
    V square = hn::Zero(d);
    for_parts(l.cols, [&](int64_t j, int64_t count) HWY_ATTR {
      const V off = hn::Sub(load_n(s + j, count, mean), shift);
      square = hn::MulAdd(off, off, square);
    });
    const float variance = hn::GetLane(hn::SumOfLanes(d, square)) * per_col;
    const float rstd = 1.0f / std::sqrt(variance + l.eps);
    const V factor = hn::Set(d, rstd);
    for_parts(l.cols, [&](int64_t j, int64_t count) HWY_ATTR {
      const V gamma = l.gamma ? load_n(l.gamma + j, count) : hn::Set(d, 1.0f);
      const V beta = l.beta ? load_n(l.beta + j, count) : hn::Zero(d);
      const V x_hat = hn::Mul(hn::Sub(load_n(s + j, count), shift), factor);
      store_n(hn::MulAdd(x_hat, gamma, beta), l.y + at + j, count);
    });
    if (l.mean) l.mean[r] = mean;
    if (l.rstd) l.rstd[r] = rstd;
  }
}

// d_gamma and d_beta, when wanted, are sums over this block's rows alone, starting from what they hold.
void layer_norm_backward_block(const LayerNormBackward<float>& l, int64_t begin, int64_t end) {
  const FloatTag d;
  const float per_col = 1.0f / static_cast<float>(l.cols);
  for (int64_t r = begin; r < end; ++r) {
    const int64_t at = r * l.cols;
    const float *s = l.s + at, *d_y = l.d_y + at;
    const V mean = hn::Set(d, l.mean[r]), rstd = hn::Set(d, l.rstd[r]);
    V sum_g = hn::Zero(d), sum_gx = hn::Zero(d);
    for_parts(l.cols, [&](int64_t j, int64_t count) HWY_ATTR {
      const V dy = load_n(d_y + j, count);
      const V x_hat = hn::Mul(hn::Sub(load_n(s + j, count), mean), rstd);
      const V g = l.gamma ? hn::Mul(dy, load_n(l.gamma + j, count)) : dy;
      sum_g = hn::Add(sum_g, g);
      sum_gx = hn::MulAdd(g, x_hat, sum_gx);
      if (l.d_gamma) store_n(hn::MulAdd(dy, x_hat, load_n(l.d_gamma + j, count)), l.d_gamma + j, count);
      if (l.d_beta) store_n(hn::Add(dy, load_n(l.d_beta + j, count)), l.d_beta + j, count);
    });
    if (!l.d_s) continue;
    const V mean_g = hn::Mul(hn::SumOfLanes(d, sum_g), hn::Set(d, per_col));
    const V mean_gx = hn::Mul(hn::SumOfLanes(d, sum_gx), hn::Set(d, per_col));
    for_parts(l.cols, [&](int64_t j, int64_t count) HWY_ATTR {
      const V dy = load_n(d_y + j, count);
      const V x_hat = hn::Mul(hn::Sub(load_n(s + j, count), mean), rstd);
      const V g = l.gamma ? hn::Mul(dy, load_n(l.gamma + j, count)) : dy;
      const V skip = l.d_sum ? load_n(l.d_sum + at + j, count) : hn::Zero(d);
      const V inner = hn::NegMulAdd(x_hat, mean_gx, hn::Sub(g, mean_g));
      store_n(hn::MulAdd(rstd, inner, skip), l.d_s + at + j, count);
    });
  }
}

// out[j] += Σ x[r,j] over rows [begin, end), four rows at a time.
void sum_rows_block(const float* x, int64_t cols, int64_t begin, int64_t end, float* out) {
  int64_t r = begin;
  for (; r + 4 <= end; r += 4) {
    const float* at = x + r * cols;
    const auto four = [](V o, V a, V b, V c, V e)
                          HWY_ATTR { return hn::Add(o, hn::Add(hn::Add(a, b), hn::Add(c, e))); };
    map(cols, out, four, static_cast<const float*>(out), at, at + cols, at + 2 * cols, at + 3 * cols);
  }
  for (; r < end; ++r)
    map(
        cols, out, [](V o, V a) HWY_ATTR { return hn::Add(o, a); }, static_cast<const float*>(out), x + r * cols);
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {
namespace {

HWY_EXPORT(layer_norm_block);
HWY_EXPORT(layer_norm_backward_block);
HWY_EXPORT(sum_rows_block);

int64_t block_of(int64_t cols) { return std::max<int64_t>(1, 8192 / std::max<int64_t>(cols, 1)); }

// Rows per block of a sum over rows: at least 64, at most 64 blocks.
int64_t sum_block_of(int64_t rows) { return std::max<int64_t>(64, (rows + 63) / 64); }

float* partial_sums(int64_t n) {
  thread_local GrowingBuffer buffer;
  float* sums = buffer.get(n);
  std::fill(sums, sums + n, 0.0f);
  return sums;
}

// out[j] += Σ over blocks, in order, of part[block*cols + j].
void add_parts(const float* part, int64_t parts, int64_t cols, float* out) {
  if (out) HWY_DYNAMIC_DISPATCH(sum_rows_block)(part, cols, 0, parts, out);
}

}  // namespace

void layer_norm(const LayerNorm<float>& l) {
  parallel_blocks(l.rows, block_of(l.cols), [&](int64_t b, int64_t e) {
    HWY_DYNAMIC_DISPATCH(layer_norm_block)(l, b, e);
  });
}

void layer_norm_backward(const LayerNormBackward<float>& l) {
  const int64_t block = sum_block_of(l.rows), parts = (l.rows + block - 1) / block;
  if (parts == 0) return;
  float* gamma = partial_sums(2 * parts * l.cols);
  float* beta = gamma + parts * l.cols;
  parallel_blocks(l.rows, block, [&](int64_t begin, int64_t end) {
    LayerNormBackward<float> part = l;
    if (l.d_gamma) part.d_gamma = gamma + begin / block * l.cols;
    if (l.d_beta) part.d_beta = beta + begin / block * l.cols;
    HWY_DYNAMIC_DISPATCH(layer_norm_backward_block)(part, begin, end);
  });
  add_parts(gamma, parts, l.cols, l.d_gamma);
  add_parts(beta, parts, l.cols, l.d_beta);
}

void sum_rows(const SumRows<float>& s) {
  if (!s.accumulate) std::fill(s.out, s.out + s.cols, 0.0f);
  const int64_t block = sum_block_of(s.rows), parts = (s.rows + block - 1) / block;
  float* sums = parts > 0 ? partial_sums(parts * s.cols) : nullptr;
  parallel_blocks(s.rows, block, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(sum_rows_block)(s.x, s.cols, begin, end, sums + begin / block * s.cols);
  });
  if (parts > 0) add_parts(sums, parts, s.cols, s.out);
}

}  // namespace qkv::kernels
#endif
