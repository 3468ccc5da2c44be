// Sums and means, in a fixed order whatever the number of threads.
#include "qkv/ops/common.h"
#include "qkv/ops/ops.h"

namespace qkv {
namespace {

// Sum of n values in double, so that long sums keep f32's digits.
template <class T>
double total(const T* p, int64_t n) {
  double s = 0;
  for (int64_t i = 0; i < n; ++i) s += static_cast<double>(p[i]);
  return s;
}

}  // namespace

Tensor sum(const Tensor& x) {
  check_defined("sum", x);
  const Tensor in = dense(x);
  const double s = dispatch(x.dtype(), [&](auto t) { return total(in.data<decltype(t)>(), in.numel()); });
  return record("sum", Tensor::full({}, s, x.dtype()), {x}, [shape = x.shape()](const Tensor& d_out, Grads& d) {
    d.add(0, Tensor::full(shape, d_out.item(), d_out.dtype()));
  });
}

Tensor mean(const Tensor& x) {
  check_defined("mean", x);
  return affine(sum(x), 1.0 / static_cast<double>(std::max<int64_t>(1, x.numel())));
}

Tensor sum(const Tensor& x, int axis, bool keep_axis) {
  const int a = normal_axis("sum", x, axis);
  Shape kept = x.shape();
  kept[a] = 1;
  Shape dropped;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != a) dropped.push_back(x.dim(i));
  }
  const Tensor in = dense(x);
  Tensor out = Tensor::empty(keep_axis ? kept : dropped, x.dtype());
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < a; ++i) outer *= x.dim(i);
  for (int i = a + 1; i < x.rank(); ++i) inner *= x.dim(i);
  const int64_t n = x.dim(a);
  dispatch(x.dtype(), [&](auto t) {
    using T = decltype(t);
    const T* p = in.data<T>();
    T* o = out.data<T>();
    parallel_for(outer, [&](int64_t i) {
      std::vector<double> sums(static_cast<size_t>(inner), 0.0);
      for (int64_t j = 0; j < n; ++j) {
        const T* row = p + (i * n + j) * inner;
        for (int64_t k = 0; k < inner; ++k) sums[static_cast<size_t>(k)] += static_cast<double>(row[k]);
      }
      for (int64_t k = 0; k < inner; ++k) o[i * inner + k] = static_cast<T>(sums[static_cast<size_t>(k)]);
    });
  });
  return record("sum", out, {x}, [kept, shape = x.shape()](const Tensor& d_out, Grads& d) {
    d.add(0, expand(reshape(d_out, kept), shape));
  });
}

Tensor mean(const Tensor& x, int axis, bool keep_axis) {
  const int64_t n = x.dim(normal_axis("mean", x, axis));
  return affine(sum(x, axis, keep_axis), 1.0 / static_cast<double>(std::max<int64_t>(1, n)));
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  check_defined("sum_to", x);
  if (x.shape() == shape) return x;
  Tensor out = x;
  while (out.rank() > shape.rank()) out = sum(out, 0);
  for (int i = 0; i < shape.rank(); ++i) {
    if (out.dim(i) == shape[i]) continue;
    if (shape[i] != 1) shape_error("sum_to", x.shape().str() + " does not reduce to " + shape.str());
    out = sum(out, i, true);
  }
  return out;
}

}  // namespace qkv
