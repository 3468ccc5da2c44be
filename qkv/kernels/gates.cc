// The pointwise half of LSTM and GRU steps, compiled once per instruction set.
#include "qkv/kernels/gates.h"

#include "qkv/base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/gates.cc"
#include "hwy/foreach_target.h"
// After foreach_target: what follows is compiled once per target.
#include "qkv/kernels/vector_loop-inl.h"
#include "qkv/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

using V = FloatVec;

// The elements at row r, or zero without data.
HWY_INLINE V load_or_zero(const RowMajor<const float>& rows, int64_t r, int64_t j, int64_t count) {
  return rows.data ? load_n(rows.row(r) + j, count) : hn::Zero(FloatTag());
}

void lstm_rows(const LstmStep<float>& s, int64_t begin, int64_t end) {
  const FloatTag d;
  for (int64_t r = begin; r < end; ++r) {
    float* gates = s.gates.row(r);
    for_parts(s.H, [&](int64_t j, int64_t count) HWY_ATTR {
      float* at = gates + j;
      const V i = sigmoid_v(d, load_n(at, count)), f = sigmoid_v(d, load_n(at + s.H, count));
      const V g = tanh_v(d, load_n(at + 2 * s.H, count)), o = sigmoid_v(d, load_n(at + 3 * s.H, count));
      const V c = hn::MulAdd(f, load_or_zero(s.c_prev, r, j, count), hn::Mul(i, g));
      store_n(i, at, count);
      store_n(f, at + s.H, count);
      store_n(g, at + 2 * s.H, count);
      store_n(o, at + 3 * s.H, count);
      store_n(c, s.c.row(r) + j, count);
      store_n(hn::Mul(o, tanh_v(d, c)), s.h.row(r) + j, count);
    });
  }
}

void lstm_rows_backward(const LstmStepBackward<float>& s, int64_t begin, int64_t end) {
  const FloatTag d;
  const V one = hn::Set(d, 1.0f);
  for (int64_t r = begin; r < end; ++r) {
    for_parts(s.H, [&](int64_t j, int64_t count) HWY_ATTR {
      const float* at = s.gates.row(r) + j;
      float* to = s.d_gates.row(r) + j;
      const V i = load_n(at, count), f = load_n(at + s.H, count);
      const V g = load_n(at + 2 * s.H, count), o = load_n(at + 3 * s.H, count);
      const V tanh_c = tanh_v(d, load_n(s.c.row(r) + j, count)), d_h = load_n(s.d_h.row(r) + j, count);
      const V through_c = hn::Mul(hn::Mul(d_h, o), hn::NegMulAdd(tanh_c, tanh_c, one));
      const V dc = hn::Add(load_or_zero(s.d_c, r, j, count), through_c);
      const V c_prev = load_or_zero(s.c_prev, r, j, count);
      store_n(hn::Mul(hn::Mul(dc, g), hn::Mul(i, hn::Sub(one, i))), to, count);
      store_n(hn::Mul(hn::Mul(dc, c_prev), hn::Mul(f, hn::Sub(one, f))), to + s.H, count);
      store_n(hn::Mul(hn::Mul(dc, i), hn::NegMulAdd(g, g, one)), to + 2 * s.H, count);
      store_n(hn::Mul(hn::Mul(d_h, tanh_c), hn::Mul(o, hn::Sub(one, o))), to + 3 * s.H, count);
      if (s.d_c_prev.data) store_n(hn::Mul(dc, f), s.d_c_prev.row(r) + j, count);
    });
  }
}

void gru_rows(const GruStep<float>& s, int64_t begin, int64_t end) {
  const FloatTag d;
  for (int64_t row = begin; row < end; ++row) {
    for_parts(s.H, [&](int64_t j, int64_t count) HWY_ATTR {
      const float *x = s.x_gates.row(row) + j, *h = s.h_gates.row(row) + j;
      const V hn_part = load_n(h + 2 * s.H, count);
      const V r = sigmoid_v(d, hn::Add(load_n(x, count), load_n(h, count)));
      const V z = sigmoid_v(d, hn::Add(load_n(x + s.H, count), load_n(h + s.H, count)));
      const V n = tanh_v(d, hn::MulAdd(r, hn_part, load_n(x + 2 * s.H, count)));
      const V h_prev = load_or_zero(s.h_prev, row, j, count);
      if (s.saved.data) {
        float* saved = s.saved.row(row) + j;
        store_n(r, saved, count);
        store_n(z, saved + s.H, count);
        store_n(n, saved + 2 * s.H, count);
        store_n(hn_part, saved + 3 * s.H, count);
      }
      // (1 - z) n + z h_prev = n + z (h_prev - n)
      store_n(hn::MulAdd(z, hn::Sub(h_prev, n), n), s.h.row(row) + j, count);
    });
  }
}

void gru_rows_backward(const GruStepBackward<float>& s, int64_t begin, int64_t end) {
  const V one = hn::Set(FloatTag(), 1.0f);
  for (int64_t row = begin; row < end; ++row) {
    for_parts(s.H, [&](int64_t j, int64_t count) HWY_ATTR {
      const float* saved = s.saved.row(row) + j;
      float *to_x = s.d_x_gates.row(row) + j, *to_h = s.d_h_gates.row(row) + j;
      const V r = load_n(saved, count), z = load_n(saved + s.H, count);
      const V n = load_n(saved + 2 * s.H, count), hn_part = load_n(saved + 3 * s.H, count);
      const V h_prev = load_or_zero(s.h_prev, row, j, count), d_h = load_n(s.d_h.row(row) + j, count);
      const V dn = hn::Mul(hn::Mul(d_h, hn::Sub(one, z)), hn::NegMulAdd(n, n, one));
      const V dz = hn::Mul(hn::Mul(d_h, hn::Sub(h_prev, n)), hn::Mul(z, hn::Sub(one, z)));
      const V dr = hn::Mul(hn::Mul(dn, hn_part), hn::Mul(r, hn::Sub(one, r)));
      store_n(dr, to_x, count);
      store_n(dz, to_x + s.H, count);
      store_n(dn, to_x + 2 * s.H, count);
      store_n(dr, to_h, count);
      store_n(dz, to_h + s.H, count);
      store_n(hn::Mul(dn, r), to_h + 2 * s.H, count);
      if (s.d_h_prev.data) store_n(hn::Mul(d_h, z), s.d_h_prev.row(row) + j, count);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {
namespace {

HWY_EXPORT(lstm_rows);
HWY_EXPORT(lstm_rows_backward);
HWY_EXPORT(gru_rows);
HWY_EXPORT(gru_rows_backward);

// Blocks of rows with about 4,096 elements of state each: some 10 µs of work.
int64_t block_of(int64_t H) { return 4096 / (H > 0 && H < 4096 ? H : 4096); }

}  // namespace

void lstm_step(const LstmStep<float>& s) {
  parallel_blocks(s.rows, block_of(s.H), [&](int64_t b, int64_t e) { HWY_DYNAMIC_DISPATCH(lstm_rows)(s, b, e); });
}

void lstm_step_backward(const LstmStepBackward<float>& s) {
  parallel_blocks(s.rows, block_of(s.H), [&](int64_t b, int64_t e) {
    HWY_DYNAMIC_DISPATCH(lstm_rows_backward)(s, b, e);
  });
}

void gru_step(const GruStep<float>& s) {
  parallel_blocks(s.rows, block_of(s.H), [&](int64_t b, int64_t e) { HWY_DYNAMIC_DISPATCH(gru_rows)(s, b, e); });
}

void gru_step_backward(const GruStepBackward<float>& s) {
  parallel_blocks(s.rows, block_of(s.H), [&](int64_t b, int64_t e) {
    HWY_DYNAMIC_DISPATCH(gru_rows_backward)(s, b, e);
  });
}

}  // namespace qkv::kernels
#endif
