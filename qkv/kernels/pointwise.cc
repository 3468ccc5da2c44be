// Elementwise kernels, compiled once per instruction set; arrays are cut into blocks of a fixed size.
#include "qkv/kernels/pointwise.h"

#include "qkv/base/parallel.h"
#include "qkv/kernels/dropout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/pointwise.cc"
#include "hwy/foreach_target.h"
// After foreach_target: what follows is compiled once per target.
#include "qkv/kernels/vector_loop-inl.h"
#include "qkv/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

using V = FloatVec;

void unary_forward_block(Unary op, const float* x, float* y, int64_t n) {
  const FloatTag d;
  switch (op) {
    case Unary::relu:
      return map(
          n, y, [d](V a) HWY_ATTR { return relu_v(d, a); }, x);
    case Unary::gelu:
      return map(
          n, y, [d](V a) HWY_ATTR { return gelu_v(d, a); }, x);
    case Unary::tanh:
      return map(
          n, y, [d](V a) HWY_ATTR { return tanh_v(d, a); }, x);
    case Unary::sigmoid:
      return map(
          n, y, [d](V a) HWY_ATTR { return sigmoid_v(d, a); }, x);
    case Unary::exp:
      return map(
          n, y, [d](V a) HWY_ATTR { return exp_v(d, a); }, x);
  }
}

void unary_backward_block(Unary op, const float* saved, const float* d_y, float* d_x, int64_t n) {
  const FloatTag d;
  const V one = hn::Set(d, 1.0f);
  const auto relu = [d](V s, V g) HWY_ATTR { return hn::IfThenElseZero(hn::Gt(s, hn::Zero(d)), g); };
  const auto gelu = [d](V s, V g) HWY_ATTR { return hn::Mul(g, gelu_slope_v(d, s)); };
  const auto tanh = [one](V s, V g) HWY_ATTR { return hn::Mul(g, hn::NegMulAdd(s, s, one)); };
  const auto sigmoid = [one](V s, V g) HWY_ATTR { return hn::Mul(g, hn::Mul(s, hn::Sub(one, s))); };
  const auto exp = [](V s, V g) HWY_ATTR { return hn::Mul(g, s); };
  switch (op) {
    case Unary::relu:
      return map(n, d_x, relu, saved, d_y);
    case Unary::gelu:
      return map(n, d_x, gelu, saved, d_y);
    case Unary::tanh:
      return map(n, d_x, tanh, saved, d_y);
    case Unary::sigmoid:
      return map(n, d_x, sigmoid, saved, d_y);
    case Unary::exp:
      return map(n, d_x, exp, saved, d_y);
  }
}

// One block of DropoutRule::kBlock elements; residual may be null. The bits are those of dropout_bits().
void dropout_block(const DropoutRule& rule, uint32_t key, const float* x, const float* residual, float* y, int64_t n) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> du;
  const V scale = hn::Set(d, rule.keep_scale);
  const auto threshold = hn::Set(du, rule.threshold);
  auto at = hn::Add(hn::Set(du, key), hn::Mul(hn::Iota(du, 0), hn::Set(du, 0x9E3779B9u)));
  const auto step = hn::Set(du, static_cast<uint32_t>(kFloatLanes) * 0x9E3779B9u);
  const auto kept = [&]() HWY_ATTR {
    auto h = hn::Mul(hn::Xor(at, hn::ShiftRight<16>(at)), hn::Set(du, 0x85EBCA6Bu));
    h = hn::Mul(hn::Xor(h, hn::ShiftRight<13>(h)), hn::Set(du, 0xC2B2AE35u));
    h = hn::Xor(h, hn::ShiftRight<16>(h));
    at = hn::Add(at, step);
    return hn::RebindMask(d, hn::Not(hn::Lt(h, threshold)));
  };
  const auto plain = [&](V a) HWY_ATTR { return hn::IfThenElseZero(kept(), hn::Mul(a, scale)); };
  const auto added = [&](V a, V r) HWY_ATTR { return hn::Add(r, plain(a)); };
  if (residual)
    map(n, y, added, x, residual);
  else
    map(n, y, plain, x);
}

void add_block(const float* x, const float* y, float* z, int64_t n) {
  map(
      n, z, [](V u, V v) HWY_ATTR { return hn::Add(u, v); }, x, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {
namespace {

HWY_EXPORT(unary_forward_block);
HWY_EXPORT(unary_backward_block);
HWY_EXPORT(dropout_block);
HWY_EXPORT(add_block);

constexpr int64_t kBlock = 16384;  // 64 KiB per array: enough to be worth a thread's while

// f(begin, count) for every block.
template <class F>
void blocks(int64_t n, const F& f) {
  parallel_blocks(n, kBlock, [&](int64_t begin, int64_t end) { f(begin, end - begin); });
}

}  // namespace

void unary_forward(Unary op, const float* x, float* y, int64_t n) {
  blocks(n, [&](int64_t i, int64_t m) { HWY_DYNAMIC_DISPATCH(unary_forward_block)(op, x + i, y + i, m); });
}

void unary_backward(Unary op, const float* saved, const float* d_y, float* d_x, int64_t n) {
  blocks(n, [&](int64_t i, int64_t m) {
    HWY_DYNAMIC_DISPATCH(unary_backward_block)(op, saved + i, d_y + i, d_x + i, m);
  });
}

void dropout_add(const DropoutRule& rule, const float* x, const float* residual, float* y, int64_t n) {
  constexpr int64_t kRun = DropoutRule::kBlock;
  blocks(n, [&](int64_t begin, int64_t count) {
    for (int64_t i = begin; i < begin + count; i += kRun) {
      const uint32_t key = dropout_row_key(rule.seed, 0, static_cast<uint64_t>(i / kRun));
      const int64_t m = std::min(kRun, begin + count - i);
      HWY_DYNAMIC_DISPATCH(dropout_block)(rule, key, x + i, residual ? residual + i : nullptr, y + i, m);
    }
  });
}

void dropout(const DropoutRule& rule, const float* x, float* y, int64_t n) { dropout_add(rule, x, nullptr, y, n); }

void add(const float* x, const float* y, float* z, int64_t n) {
  blocks(n, [&](int64_t i, int64_t m) { HWY_DYNAMIC_DISPATCH(add_block)(x + i, y + i, z + i, m); });
}

}  // namespace qkv::kernels
#endif
