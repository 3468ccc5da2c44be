// Views and copies that change a tensor's shape but not its numbers.
#include <optional>

#include "qkv/ops/common.h"
#include "qkv/ops/ops.h"

namespace qkv {
namespace {

Shape resolve(const Tensor& x, Shape shape) {
  int unknown = -1;
  int64_t known = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == -1 && unknown < 0) {
      unknown = i;
    } else {
      known *= shape[i];
    }
  }
  if (unknown >= 0) shape[unknown] = known == 0 ? 0 : x.numel() / known;
  if (shape.numel() != x.numel()) shape_error("reshape", x.shape().str() + " does not fit " + shape.str());
  return shape;
}

// Strides that show x's memory as `shape`, if there are any: each group of axes of x that becomes a group of axes
// of `shape` must be contiguous in itself.
std::optional<Shape> view_strides(const Tensor& x, const Shape& shape) {
  if (x.numel() == 0) return shape.contiguous_strides();
  Shape strides = shape;
  int xi = x.rank() - 1, si = shape.rank() - 1;
  while (si >= 0) {
    while (xi >= 0 && x.dim(xi) == 1) --xi;
    if (xi < 0) {
      for (; si >= 0; --si) strides[si] = 1;  // only sizes of 1 are left
      break;
    }
    // The longest run of x's axes ending at xi that is contiguous.
    int64_t run = x.dim(xi);
    const int64_t step = x.strides()[xi];
    int first = xi;
    while (first > 0 && (x.dim(first - 1) == 1 || x.strides()[first - 1] == step * run)) {
      --first;
      run *= x.dim(first);
    }
    int64_t filled = 1;
    for (; si >= 0 && (filled < run || shape[si] == 1); --si) {
      strides[si] = step * filled;
      filled *= shape[si];
    }
    if (filled != run) return std::nullopt;
    xi = first - 1;
  }
  return strides;
}

}  // namespace

Tensor reshape(const Tensor& x, const Shape& wanted) {
  check_defined("reshape", x);
  const Shape shape = resolve(x, wanted);
  const auto strides = view_strides(x, shape);
  const Tensor base = strides ? x : x.clone();
  const Tensor out = base.as_strided(shape, strides ? *strides : shape.contiguous_strides(), base.storage_offset());
  return record("reshape", out, {x},
                [from = x.shape()](const Tensor& d_out, Grads& d) { d.add(0, reshape(d_out, from)); });
}

Tensor permute(const Tensor& x, std::initializer_list<int> axes) {
  check_defined("permute", x);
  if (static_cast<int>(axes.size()) != x.rank()) shape_error("permute", "wrong number of axes for " + x.shape().str());
  Shape shape, strides, inverse = x.shape();
  unsigned seen = 0;
  int to = 0;
  for (int axis : axes) {
    const int a = normal_axis("permute", x, axis);
    if (seen & (1u << a)) shape_error("permute", "axis " + std::to_string(axis) + " given twice");
    seen |= 1u << a;
    shape.push_back(x.dim(a));
    strides.push_back(x.strides()[a]);
    inverse[a] = to++;
  }
  return record("permute", x.as_strided(shape, strides, x.storage_offset()), {x},
                [inverse](const Tensor& d_out, Grads& d) {
                  Shape back, back_strides;
                  for (int64_t a : inverse) {
                    back.push_back(d_out.dim(static_cast<int>(a)));
                    back_strides.push_back(d_out.strides()[static_cast<int>(a)]);
                  }
                  d.add(0, d_out.as_strided(back, back_strides, d_out.storage_offset()));
                });
}

Tensor transpose(const Tensor& x, int axis_a, int axis_b) {
  check_defined("transpose", x);
  const int a = normal_axis("transpose", x, axis_a), b = normal_axis("transpose", x, axis_b);
  Shape shape = x.shape(), strides = x.strides();
  std::swap(shape[a], shape[b]);
  std::swap(strides[a], strides[b]);
  return record("transpose", x.as_strided(shape, strides, x.storage_offset()), {x},
                [a, b](const Tensor& d_out, Grads& d) { d.add(0, transpose(d_out, a, b)); });
}

Tensor slice(const Tensor& x, int axis, int64_t begin, int64_t end) {
  check_defined("slice", x);
  const int a = normal_axis("slice", x, axis);
  const int64_t n = x.dim(a);
  const int64_t first = begin < 0 ? begin + n : begin, last = end < 0 ? end + n : end;
  if (first < 0 || last > n || first > last) {
    shape_error("slice", "[" + std::to_string(begin) + ", " + std::to_string(end) + ") outside axis " +
                             std::to_string(axis) + " of " + x.shape().str());
  }
  Shape shape = x.shape();
  shape[a] = last - first;
  const Tensor out = x.as_strided(shape, x.strides(), x.storage_offset() + first * x.strides()[a]);
  return record("slice", out, {x}, [a, first, last](const Tensor& d_out, Grads& d) {
    slice(d.buffer(0), a, first, last).add_from(d_out);
  });
}

Tensor concat(const std::vector<Tensor>& parts, int axis) {
  if (parts.empty()) shape_error("concat", "nothing to join");
  const int a = normal_axis("concat", parts[0], axis);
  Shape shape = parts[0].shape();
  shape[a] = 0;
  for (const Tensor& p : parts) {
    check_same_dtype("concat", parts[0], p);
    for (int i = 0; i < std::max(p.rank(), shape.rank()); ++i) {
      if (p.rank() != shape.rank() || (i != a && p.dim(i) != shape[i])) {
        shape_error("concat", "shapes differ off axis " + std::to_string(axis) + ": " + parts[0].shape().str() +
                                  " and " + p.shape().str());
      }
    }
    shape[a] += p.dim(a);
  }
  const Tensor out = Tensor::empty(shape, parts[0].dtype());
  int64_t at = 0;
  for (const Tensor& p : parts) {
    slice(out, a, at, at + p.dim(a)).copy_from(p);
    at += p.dim(a);
  }
  std::vector<int64_t> sizes;
  for (const Tensor& p : parts) sizes.push_back(p.dim(a));
  return record("concat", out, parts, [a, sizes](const Tensor& d_out, Grads& d) {
    int64_t begin = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (d.wants(i)) d.add(i, slice(d_out, a, begin, begin + sizes[i]));
      begin += sizes[i];
    }
  });
}

Tensor contiguous(const Tensor& x) {
  check_defined("contiguous", x);
  if (x.is_contiguous()) return x;
  return record("contiguous", x.clone(), {x}, [](const Tensor& d_out, Grads& d) { d.add(0, d_out); });
}

Tensor expand(const Tensor& x, const Shape& shape) {
  check_defined("expand", x);
  const int lead = shape.rank() - x.rank();
  if (lead < 0) shape_error("expand", x.shape().str() + " does not broadcast to " + shape.str());
  Shape strides;
  for (int i = 0; i < shape.rank(); ++i) {
    const int64_t size = i < lead ? 1 : x.dim(i - lead);
    if (size != shape[i] && size != 1) shape_error("expand", x.shape().str() + " does not broadcast to " + shape.str());
    strides.push_back(size == shape[i] && i >= lead ? x.strides()[i - lead] : 0);
  }
  return record("expand", x.as_strided(shape, strides, x.storage_offset()), {x},
                [from = x.shape()](const Tensor& d_out, Grads& d) { d.add(0, sum_to(d_out, from)); });
}

}  // namespace qkv
