// Arrays of Python (NumPy, the buffer protocol, DLPack) as tensors, and tensors as NumPy arrays; neither is copied.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "qkv/core/tensor.h"
#include "qkv/ops/attention.h"

namespace qkv::python {

namespace py = pybind11;

/// The arrays a call works on stay alive as long as this does. Made and destroyed with the GIL held.
class Borrowed {
 public:
  /// A tensor on the object's own memory: f32 and f64 as they are; f16 is converted to f32, and so is what lies
  /// unaligned. `name` is the argument's, for the DTypeError of anything else.
  Tensor tensor(const py::object& object, const char* name);
  /// The same; None is an undefined tensor.
  Tensor optional(const py::object& object, const char* name);
  /// Whether one of them was f16: results then are, too.
  bool half() const { return half_; }

 private:
  std::vector<py::object> kept_;
  bool half_ = false;
};

/// A NumPy array on the tensor's memory, which lives as long as the array; of `half` a copy in f16. The tensor must not
/// lie in memory of others.
py::array to_numpy(const Tensor& tensor, bool half = false);
/// The numbers as int64.
py::array to_whole_numbers(const Tensor& tensor);

/// Whole numbers: a sequence or an array of any integer type, read in row-major order; None is empty.
std::vector<int64_t> whole_numbers(const py::object& object, const char* name);
/// Booleans; None is no mask.
BoolMask mask_of(const py::object& object);

/// Throws DTypeError.
[[noreturn]] void dtype_error(const std::string& message);

}  // namespace qkv::python
