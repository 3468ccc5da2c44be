// DLPack capsules of other libraries, read by hand.
#pragma once

#include <pybind11/numpy.h>

namespace qkv::python {

/// A NumPy array on the memory of an object that has __dlpack__, which it keeps alive. Throws DTypeError for a tensor
/// that is not in the main memory or not of numbers.
pybind11::array array_from_dlpack(const pybind11::object& object, const char* name);

}  // namespace qkv::python
