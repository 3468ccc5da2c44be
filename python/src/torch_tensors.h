// Tensors of PyTorch: their memory, asked of PyTorch's own methods, without a capsule or an array in between, and new
// ones on memory of qkv's.
#pragma once

#include <pybind11/pybind11.h>

#include "qkv/core/tensor.h"

namespace qkv::python {

/// Whether the object is a tensor of PyTorch; false as long as qkv.torch was not imported.
bool is_torch_tensor(const pybind11::handle& object);
/// A tensor of float32 or float64 on its memory, which it does not keep alive; an undefined one when its numbers do not
/// lie there as they are (float16, unaligned, a negative view). Throws DTypeError for other types, for a tensor on
/// another device or without memory of its own, and for one whose history would be lost.
Tensor tensor_of_torch(const pybind11::object& object, const char* name);
/// Any CPU tensor as a NumPy array on its memory.
pybind11::object array_of_torch(const pybind11::object& object, const char* name);

/// A tensor of PyTorch on the tensor's memory, which must not be memory of others.
pybind11::object to_torch(const Tensor& tensor);

void add_torch_tensors(pybind11::module_& m);

}  // namespace qkv::python
