// What the implementations of ops share: checks, dense copies, sums of rows by index.
#pragma once

#include <span>
#include <string>
#include <type_traits>

#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "qkv/core/dispatch.h"

namespace qkv {

/// Elements a task of an elementwise op works on: large enough to hide the hand-over, fixed so bits never change.
constexpr int64_t kBlock = 1 << 14;

[[noreturn]] inline void shape_error(const char* op, const std::string& what) {
  throw ShapeError(std::string("[") + op + "] " + what);
}

inline void check_defined(const char* op, const Tensor& t) {
  if (!t.defined()) shape_error(op, "undefined tensor given");
}

inline void check_same_dtype(const char* op, const Tensor& a, const Tensor& b) {
  check_defined(op, a);
  check_defined(op, b);
  if (a.dtype() != b.dtype()) {
    shape_error(op, std::string("dtypes differ: ") + name_of(a.dtype()) + " and " + name_of(b.dtype()));
  }
}

/// Axis in [0, rank), negative counting from the end.
inline int normal_axis(const char* op, const Tensor& t, int axis) {
  check_defined(op, t);
  const int a = axis < 0 ? axis + t.rank() : axis;
  if (a < 0 || a >= t.rank()) shape_error(op, "axis " + std::to_string(axis) + " outside shape " + t.shape().str());
  return a;
}

/// The tensor a T* is taken from: a const one for a const T.
template <class T>
using TensorOf = std::conditional_t<std::is_const_v<T>, const Tensor, Tensor>;

/// A contiguous tensor with the same numbers, without history (for use inside ops).
inline Tensor dense(const Tensor& t) {
  if (!t.is_contiguous()) return t.clone();
  return t.node() ? t.detach() : t;
}

/// table[ids[i]] += rows[i] in the order of i; negative ids are left out.
void add_rows_at(const Tensor& rows, std::span<const int64_t> ids, Tensor table);

}  // namespace qkv
