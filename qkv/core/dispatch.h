// From a tensor's dtype, known at run time, to a type.
#pragma once

#include "qkv/core/tensor.h"

namespace qkv {

/// fn(T{}) with T = float or double.
template <class Fn>
decltype(auto) dispatch(DType dtype, Fn&& fn) {
  if (dtype == DType::f32) return fn(float{});
  return fn(double{});
}

}  // namespace qkv
