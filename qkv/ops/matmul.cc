// Matrix products: batched matmul and the linear layer.
#include "qkv/kernels/pointwise.h"
#include "qkv/kernels/rowwise.h"
#include "qkv/ops/common.h"
#include "qkv/ops/ops.h"
#include "qkv/ops/product.h"

namespace qkv {
namespace {

// A contiguous matrix inside a tensor: where it begins, its columns, and whether it is read transposed.
struct Part {
  const Tensor& t;
  int64_t offset, columns;
  bool transposed;
};

// C (+)= op(A)·op(B) with C [M, N] at c's offset.
void product_of(const Part& a, const Part& b, Tensor& c, int64_t c_offset, const int64_t (&mnk)[3], bool accumulate) {
  dispatch(c.dtype(), [&](auto t) {
    using T = decltype(t);
    const auto operand = [](const Part& p) { return Operand<T>{{p.t.data<T>() + p.offset, p.columns}, p.transposed}; };
    product<T>(mnk, operand(a), operand(b), {c.data<T>() + c_offset, mnk[1]}, accumulate);
  });
}

// Calls fn(a_offset, b_offset, c_offset) for every matrix of a broadcast batch.
template <class Fn>
void for_each_matrix(const Shape& a, const Shape& b, const Shape& c, Fn&& fn) {
  const int batch_rank = c.rank() - 2;
  int64_t matrices = 1;
  for (int i = 0; i < batch_rank; ++i) matrices *= c[i];
  const auto offset = [&](const Shape& s, int64_t index) {
    int64_t at = 0, step = s[-1] * s[-2];
    for (int i = batch_rank - 1; i >= 0; --i) {
      const int j = i - (c.rank() - s.rank());
      const int64_t here = index % c[i];
      index /= c[i];
      if (j < 0) continue;
      if (s[j] != 1) at += here * step;
      step *= s[j];
    }
    return at;
  };
  for (int64_t m = 0; m < matrices; ++m) fn(offset(a, m), offset(b, m), m * c[-1] * c[-2]);
}

Shape matmul_shape(const Tensor& a, const Tensor& b) {
  check_defined("matmul", a);
  check_defined("matmul", b);
  check_same_dtype("matmul", a, b);
  const auto fail = [&] {
    shape_error("matmul", "a=" + a.shape().str() + ", b=" + b.shape().str() + "; expected a.dim(-1) == b.dim(-2)");
  };
  if (a.rank() < 2 || b.rank() < 2 || a.dim(-1) != b.dim(-2)) fail();
  Shape batch_a, batch_b;
  for (int i = 0; i < a.rank() - 2; ++i) batch_a.push_back(a.dim(i));
  for (int i = 0; i < b.rank() - 2; ++i) batch_b.push_back(b.dim(i));
  Shape out = broadcast("matmul", batch_a, batch_b);
  out.push_back(a.dim(-2));
  out.push_back(b.dim(-1));
  return out;
}

kernels::Unary unary_of(Act act) {
  switch (act) {
    case Act::gelu:
      return kernels::Unary::gelu;
    case Act::tanh:
      return kernels::Unary::tanh;
    case Act::sigmoid:
      return kernels::Unary::sigmoid;
    default:
      return kernels::Unary::relu;
  }
}

void check_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check_defined("linear", x);
  check_defined("linear", weight);
  check_same_dtype("linear", x, weight);
  if (weight.rank() != 2 || x.rank() < 1 || x.dim(-1) != weight.dim(1)) {
    shape_error("linear",
                "x=" + x.shape().str() + ", weight=" + weight.shape().str() + "; expected x.dim(-1) == weight.dim(1)");
  }
  if (bias.defined() && !(bias.shape() == Shape{weight.dim(0)})) {
    shape_error("linear", "bias=" + bias.shape().str() + ", weight=" + weight.shape().str());
  }
}

// out = act(x·Wᵀ + bias) and, when given, pre = x·Wᵀ + bias.
void linear_forward(const Tensor& x, const Tensor& w, const Tensor& bias, Act act, Tensor& out, Tensor& pre) {
  const int64_t O = w.dim(0), I = w.dim(1), M = O == 0 ? 0 : out.numel() / O;
  dispatch(x.dtype(), [&](auto t) {
    using T = decltype(t);
    kernels::gemm(kernels::GemmArgsOf<T>{.M = M,
                                         .N = O,
                                         .K = I,
                                         .a = x.data<T>(),
                                         .lda = I,
                                         .b = w.data<T>(),
                                         .ldb = I,
                                         .b_transposed = true,
                                         .c = out.data<T>(),
                                         .ldc = O,
                                         .bias = bias.defined() ? bias.data<T>() : nullptr,
                                         .activation = act,
                                         .pre = pre.defined() ? pre.data<T>() : nullptr});
  });
}

// d_z of the activation; `saved` is z for gelu and the output otherwise.
Tensor through_activation(Act act, const Tensor& saved, const Tensor& d_out) {
  if (act == Act::none) return d_out;
  Tensor d_z = Tensor::empty(saved.shape(), saved.dtype());
  dispatch(saved.dtype(), [&](auto t) {
    using T = decltype(t);
    kernels::unary_backward(unary_of(act), saved.data<T>(), d_out.data<T>(), d_z.data<T>(), d_z.numel());
  });
  return d_z;
}

}  // namespace

Tensor matmul(const Tensor& a_in, const Tensor& b_in) {
  const Shape shape = matmul_shape(a_in, b_in);
  const Tensor a = dense(a_in), b = dense(b_in);
  Tensor out = Tensor::empty(shape, a.dtype());
  const int64_t M = shape[-2], N = shape[-1], K = a.dim(-1);
  for_each_matrix(a.shape(), b.shape(), shape, [&](int64_t at_a, int64_t at_b, int64_t at_c) {
    product_of({a, at_a, K, false}, {b, at_b, N, false}, out, at_c, {M, N, K}, false);
  });
  return record("matmul", out, {a_in, b_in}, [a, b, M, N, K](const Tensor& d_out, Grads& d) {
    const Tensor g = dense(d_out);
    if (d.wants(0)) {  // d_a = d_out·bᵀ
      Tensor d_a = d.buffer(0);
      for_each_matrix(a.shape(), b.shape(), g.shape(), [&](int64_t at_a, int64_t at_b, int64_t at_c) {
        product_of({g, at_c, N, false}, {b, at_b, N, true}, d_a, at_a, {M, K, N}, true);
      });
    }
    if (d.wants(1)) {  // d_b = aᵀ·d_out
      Tensor d_b = d.buffer(1);
      for_each_matrix(a.shape(), b.shape(), g.shape(), [&](int64_t at_a, int64_t at_b, int64_t at_c) {
        product_of({a, at_a, K, true}, {g, at_c, N, false}, d_b, at_b, {K, N, M}, true);
      });
    }
  });
}

Tensor linear(const Tensor& x_in, const Tensor& weight, const Tensor& bias, Act act) {
  check_linear(x_in, weight, bias);
  const Tensor x = dense(x_in), w = dense(weight);
  const int64_t O = w.dim(0), I = w.dim(1);
  Shape shape = x.shape();
  shape[-1] = O;
  Tensor out = Tensor::empty(shape, x.dtype());
  const bool recorded = needs_record({x_in, weight, bias});
  Tensor pre = recorded && act == Act::gelu ? Tensor::empty(shape, x.dtype()) : Tensor();
  linear_forward(x, w, bias.defined() ? dense(bias) : bias, act, out, pre);
  if (!recorded) return out;
  return record("linear", out, {x_in, weight, bias},
                [=, saved = act == Act::gelu ? pre : out](const Tensor& d_out, Grads& d) {
                  const int64_t M = O == 0 ? 0 : saved.numel() / O;
                  const Tensor d_z = through_activation(act, saved, dense(d_out));  // [..., O]
                  bool fresh = false;
                  if (d.wants(0)) {  // d_x = d_z·W
                    Tensor d_x = d.buffer(0, fresh);
                    product_of({d_z, 0, O, false}, {w, 0, I, false}, d_x, 0, {M, I, O}, !fresh);
                  }
                  if (d.wants(1)) {  // d_W = d_zᵀ·x
                    Tensor d_w = d.buffer(1, fresh);
                    product_of({d_z, 0, O, true}, {x, 0, I, false}, d_w, 0, {O, I, M}, !fresh);
                  }
                  if (d.wants(2)) {  // d_bias = Σ rows of d_z
                    Tensor d_b = d.buffer(2, fresh);
                    dispatch(d_z.dtype(), [&](auto t) {
                      using T = decltype(t);
                      const kernels::SumRows<T> args{M, O, d_z.data<T>(), d_b.data<T>(), !fresh};
                      kernels::sum_rows(args);
                    });
                  }
                });
}

}  // namespace qkv
