// DLPack capsules, read and made by hand.
#pragma once

#include <pybind11/numpy.h>

#include "qkv/core/tensor.h"

namespace qkv::python {

/// A NumPy array on the memory of an object that has __dlpack__, which it keeps alive. Throws DTypeError for a tensor
/// that is not in the main memory or not of numbers.
pybind11::array array_from_dlpack(const pybind11::object& object, const char* name);
/// A capsule on the tensor's memory, which it keeps alive. The tensor must not lie in memory of others.
pybind11::object capsule_of(const Tensor& tensor);

}  // namespace qkv::python
