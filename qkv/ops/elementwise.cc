// Elementwise ops: broadcasting arithmetic and pointwise functions.
#include <cmath>

#include "qkv/core/strided_loop.h"
#include "qkv/kernels/dropout.h"
#include "qkv/kernels/pointwise.h"
#include "qkv/ops/common.h"
#include "qkv/ops/ops.h"

namespace qkv {
namespace {

// Strides of t as read by a loop over `shape`: 0 along broadcast axes.
Shape broadcast_strides(const Tensor& t, const Shape& shape) {
  Shape strides;
  const int lead = shape.rank() - t.rank();
  for (int i = 0; i < shape.rank(); ++i) {
    const int at = i - lead;
    strides.push_back(at < 0 || (t.dim(at) == 1 && shape[i] != 1) ? 0 : t.strides()[at]);
  }
  return strides;
}

// out[i] = fn(a[i], b[i]) over the broadcast shape.
template <class T, class Fn>
void zip(const Tensor& a, const Tensor& b, Tensor& out, Fn fn) {
  T* o = out.data<T>();
  const T *pa = a.data<T>(), *pb = b.data<T>();
  const StridedLoop<3> loop(out.shape(),
                            {out.strides(), broadcast_strides(a, out.shape()), broadcast_strides(b, out.shape())});
  loop.run([&](const std::array<int64_t, 3>& at, int64_t n, const std::array<int64_t, 3>& step) {
    T* z = o + at[0];
    const T *x = pa + at[1], *y = pb + at[2];
    if (step[1] == 1 && step[2] == 1) {
      for (int64_t i = 0; i < n; ++i) z[i] = fn(x[i], y[i]);
    } else {
      for (int64_t i = 0; i < n; ++i) z[i] = fn(x[i * step[1]], y[i * step[2]]);
    }
  });
}

template <class Fn>
Tensor zipped(const char* op, const Tensor& a, const Tensor& b, Fn fn) {
  check_defined(op, a);
  check_defined(op, b);
  check_same_dtype(op, a, b);
  Tensor out = Tensor::empty(broadcast(op, a.shape(), b.shape()), a.dtype());
  dispatch(a.dtype(), [&](auto t) { zip<decltype(t)>(a, b, out, fn); });
  return out;
}

template <class Fn>
Tensor mapped(const Tensor& x, Fn fn) {
  const Tensor in = dense(x);
  Tensor out = Tensor::empty(x.shape(), x.dtype());
  dispatch(x.dtype(), [&](auto t) {
    using T = decltype(t);
    const T* p = in.data<T>();
    T* o = out.data<T>();
    parallel_blocks(out.numel(), kBlock, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) o[i] = static_cast<T>(fn(p[i]));
    });
  });
  return out;
}

// y = f(x); backward from y or x, whichever the kernel asks for.
Tensor unary(const char* op, const Tensor& x, kernels::Unary f) {
  check_defined(op, x);
  const Tensor in = dense(x);
  Tensor out = Tensor::empty(x.shape(), x.dtype());
  dispatch(x.dtype(), [&](auto t) {
    using T = decltype(t);
    kernels::unary_forward(f, in.data<T>(), out.data<T>(), in.numel());
  });
  return record(op, out, {x}, [f, saved = kernels::saves_output(f) ? out : in](const Tensor& d_out, Grads& d) {
    const Tensor g = dense(d_out);
    Tensor d_x = Tensor::empty(saved.shape(), saved.dtype());
    dispatch(saved.dtype(), [&](auto t) {
      using T = decltype(t);
      kernels::unary_backward(f, saved.data<T>(), g.data<T>(), d_x.data<T>(), saved.numel());
    });
    d.add(0, d_x);
  });
}

kernels::DropoutRule dropout_rule(const char* op, double p, uint64_t seed) {
  if (!(p >= 0 && p < 1)) {
    throw ConfigError(std::string("[") + op + "] p = " + std::to_string(p) + " is outside [0, 1)");
  }
  return {.seed = seed, .threshold = kernels::dropout_threshold(p), .keep_scale = static_cast<float>(1 / (1 - p))};
}

Tensor dropped(const Tensor& x, const kernels::DropoutRule& rule) {
  const Tensor in = dense(x);
  Tensor out = Tensor::empty(x.shape(), x.dtype());
  dispatch(x.dtype(), [&](auto t) {
    using T = decltype(t);
    kernels::dropout(rule, in.data<T>(), out.data<T>(), in.numel());
  });
  return out;
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  Tensor out = zipped("add", a, b, [](auto x, auto y) { return x + y; });
  return record("add", out, {a, b}, [sa = a.shape(), sb = b.shape()](const Tensor& d_out, Grads& d) {
    d.add(0, sum_to(d_out, sa));
    d.add(1, sum_to(d_out, sb));
  });
}

Tensor sub(const Tensor& a, const Tensor& b) {
  Tensor out = zipped("sub", a, b, [](auto x, auto y) { return x - y; });
  return record("sub", out, {a, b}, [sa = a.shape(), sb = b.shape()](const Tensor& d_out, Grads& d) {
    d.add(0, sum_to(d_out, sa));
    if (d.wants(1)) d.add(1, sum_to(affine(d_out, -1), sb));
  });
}

Tensor mul(const Tensor& a, const Tensor& b) {
  Tensor out = zipped("mul", a, b, [](auto x, auto y) { return x * y; });
  return record("mul", out, {a, b}, [a = a.detach(), b = b.detach()](const Tensor& d_out, Grads& d) {
    if (d.wants(0)) d.add(0, sum_to(mul(d_out, b), a.shape()));
    if (d.wants(1)) d.add(1, sum_to(mul(d_out, a), b.shape()));
  });
}

Tensor div(const Tensor& a, const Tensor& b) {
  Tensor out = zipped("div", a, b, [](auto x, auto y) { return x / y; });
  return record("div", out, {a, b}, [sa = a.shape(), b = b.detach(), out](const Tensor& d_out, Grads& d) {
    const Tensor d_a = div(d_out, b);  // d a/b = da/b - (a/b) db/b
    d.add(0, sum_to(d_a, sa));
    if (d.wants(1)) d.add(1, sum_to(affine(mul(d_a, out), -1), b.shape()));
  });
}

Tensor affine(const Tensor& x, double scale, double shift) {
  check_defined("affine", x);
  Tensor out = mapped(x, [=](auto v) { return static_cast<decltype(v)>(scale) * v + static_cast<decltype(v)>(shift); });
  return record("affine", out, {x}, [scale](const Tensor& d_out, Grads& d) { d.add(0, affine(d_out, scale)); });
}

Tensor exp(const Tensor& x) { return unary("exp", x, kernels::Unary::exp); }
Tensor tanh(const Tensor& x) { return unary("tanh", x, kernels::Unary::tanh); }
Tensor sigmoid(const Tensor& x) { return unary("sigmoid", x, kernels::Unary::sigmoid); }
Tensor relu(const Tensor& x) { return unary("relu", x, kernels::Unary::relu); }
Tensor gelu(const Tensor& x) { return unary("gelu", x, kernels::Unary::gelu); }

Tensor log(const Tensor& x) {
  check_defined("log", x);
  Tensor out = mapped(x, [](auto v) { return std::log(v); });
  return record("log", out, {x}, [x = x.detach()](const Tensor& d_out, Grads& d) { d.add(0, div(d_out, x)); });
}

Tensor dropout(const Tensor& x, double p, uint64_t seed) {
  check_defined("dropout", x);
  const kernels::DropoutRule rule = dropout_rule("dropout", p, seed);
  if (p == 0) return x;
  return record("dropout", dropped(x, rule), {x},
                [rule](const Tensor& d_out, Grads& d) { d.add(0, dropped(d_out, rule)); });
}

Tensor dropout_add(const Tensor& x_in, const Tensor& residual_in, double p, uint64_t seed) {
  check_defined("dropout_add", x_in);
  check_defined("dropout_add", residual_in);
  check_same_dtype("dropout_add", x_in, residual_in);
  const kernels::DropoutRule rule = dropout_rule("dropout_add", p, seed);
  if (!(x_in.shape() == residual_in.shape())) {
    shape_error("dropout_add", "shapes differ: " + x_in.shape().str() + " and " + residual_in.shape().str());
  }
  const Tensor x = dense(x_in), residual = dense(residual_in);
  Tensor out = Tensor::empty(x.shape(), x.dtype());
  dispatch(x.dtype(), [&](auto t) {
    using T = decltype(t);
    kernels::dropout_add(rule, x.data<T>(), residual.data<T>(), out.data<T>(), out.numel());
  });
  return record("dropout_add", out, {x_in, residual_in}, [rule](const Tensor& d_out, Grads& d) {
    if (d.wants(0)) d.add(0, rule.threshold == 0 ? d_out : dropped(d_out, rule));
    d.add(1, d_out);
  });
}

}  // namespace qkv
