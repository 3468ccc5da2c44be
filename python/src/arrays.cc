// Arrays in and out.
#include "arrays.h"

#include <algorithm>
#include <cstring>

#include "dlpack.h"
#include "errors.h"
#include "torch_tensors.h"

namespace qkv::python {
namespace {

const char* const kExpected = "; expected an array of float32, float64 or float16";

std::string dtype_text(const py::array& a) { return py::str(py::object(a.dtype())).cast<std::string>(); }

std::string type_name(const py::object& object) { return Py_TYPE(object.ptr())->tp_name; }

// The object as a NumPy array without a copy: itself, by DLPack, by the buffer protocol or by __array__.
py::array array_of(const py::object& object, const char* name, const char* expected) {
  if (py::isinstance<py::array>(object)) return py::reinterpret_borrow<py::array>(object);
  if (is_torch_tensor(object)) return array_of_torch(object, name);
  if (py::hasattr(object, "__dlpack__")) return array_from_dlpack(object, name);
  if (PyObject_CheckBuffer(object.ptr()) != 0 || py::hasattr(object, "__array__")) {
    const py::array made = py::array::ensure(object);
    if (made) return made;
    PyErr_Clear();
  }
  dtype_error(std::string(name) + " is a " + type_name(object) + expected + "; np.asarray makes one");
}

bool aligned(const py::array& a) {
  if ((a.flags() & py::detail::npy_api::NPY_ARRAY_ALIGNED_) == 0) return false;
  for (py::ssize_t i = 0; i < a.ndim(); ++i) {
    if (a.strides(i) % a.itemsize() != 0) return false;
  }
  return true;
}

template <class T>
Tensor adopted(const py::array& a, const char* name) {
  if (a.ndim() > Shape::kMaxRank) {
    throw ShapeError("[" + std::string(name) + "] " + std::to_string(a.ndim()) + " axes; expected at most " +
                     std::to_string(Shape::kMaxRank));
  }
  std::vector<int64_t> sizes(a.shape(), a.shape() + a.ndim()), strides(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) strides[i] = a.strides(static_cast<py::ssize_t>(i)) / a.itemsize();
  const Shape shape{std::span<const int64_t>(sizes)}, steps{std::span<const int64_t>(strides)};
  // Only read: a tensor of the caller's is const from here on. Borrowed keeps the array.
  auto* data = const_cast<T*>(static_cast<const T*>(a.data()));
  return Tensor::adopt(data, shape, {}, steps);
}

}  // namespace

void dtype_error(const std::string& message) { throw DTypeError(message); }

Tensor Borrowed::tensor(const py::object& object, const char* name) {
  if (is_torch_tensor(object)) {
    const Tensor t = tensor_of_torch(object, name);
    if (t.defined()) {
      kept_.push_back(object);
      return t;
    }
  }
  py::array a = array_of(object, name, kExpected);
  const bool single = py::isinstance<py::array_t<float>>(a);
  if (!single && !py::isinstance<py::array_t<double>>(a)) {
    if (a.dtype().kind() != 'f' || a.itemsize() != 2) {
      dtype_error(std::string(name) + " has dtype " + dtype_text(a) + kExpected);
    }
    half_ = true;
    a = a.attr("astype")("f4");
    kept_.push_back(a);
    return adopted<float>(a, name);
  }
  if (!aligned(a)) a = a.attr("copy")();
  kept_.push_back(a);
  return single ? adopted<float>(a, name) : adopted<double>(a, name);
}

Tensor Borrowed::optional(const py::object& object, const char* name) {
  return object.is_none() ? Tensor() : tensor(object, name);
}

py::array to_numpy(const Tensor& tensor, bool half) {
  auto* const held = new Tensor(tensor);
  const py::capsule owner(held, [](void* p) { delete static_cast<Tensor*>(p); });
  const bool single = tensor.dtype() == DType::f32;
  const auto item = static_cast<py::ssize_t>(size_of(tensor.dtype()));
  std::vector<py::ssize_t> shape, strides;
  for (int i = 0; i < tensor.rank(); ++i) {
    shape.push_back(tensor.dim(i));
    strides.push_back(tensor.strides()[i] * item);
  }
  const void* data = single ? static_cast<const void*>(held->f32()) : held->f64();
  const py::dtype dtype = single ? py::dtype::of<float>() : py::dtype::of<double>();
  py::array a(dtype, shape, strides, data, owner);
  return half ? py::array(a.attr("astype")("f2")) : a;
}

py::array to_whole_numbers(const Tensor& tensor) { return to_numpy(tensor).attr("astype")("i8"); }

std::vector<int64_t> whole_numbers(const py::object& object, const char* name) {
  if (object.is_none()) return {};
  const py::array a = py::isinstance<py::array>(object)   ? py::reinterpret_borrow<py::array>(object)
                      : is_torch_tensor(object)           ? py::array(array_of_torch(object, name))
                      : py::hasattr(object, "__dlpack__") ? array_from_dlpack(object, name)
                                                          : py::array::ensure(object);
  if (!a) PyErr_Clear();
  if (!a || (a.dtype().kind() != 'i' && a.dtype().kind() != 'u' && a.size() > 0)) {
    dtype_error(std::string(name) + " must be whole numbers");
  }
  const auto numbers = py::array_t<int64_t, py::array::c_style | py::array::forcecast>::ensure(a);
  if (!numbers) throw py::error_already_set();
  return {numbers.data(), numbers.data() + numbers.size()};
}

BoolMask mask_of(const py::object& object) {
  if (object.is_none()) return {};
  const py::array a = array_of(object, "mask", "; expected an array of booleans");
  if (a.dtype().kind() != 'b') {
    dtype_error("mask has dtype " + dtype_text(a) +
                "; expected booleans, true where the key takes part (numbers that are added to the scores are bias)");
  }
  const auto dense = py::array_t<bool, py::array::c_style | py::array::forcecast>::ensure(a);
  if (!dense) throw py::error_already_set();
  if (dense.ndim() > 4) throw ShapeError("[attention] mask has more than four axes; expected [B,H,Lq,Lk] or fewer");
  const std::vector<int64_t> sizes(dense.shape(), dense.shape() + dense.ndim());
  std::vector<uint8_t> values(static_cast<size_t>(dense.size()));
  if (!values.empty()) std::memcpy(values.data(), dense.data(), values.size());
  return bool_mask(std::move(values), Shape{std::span<const int64_t>(sizes)});
}

}  // namespace qkv::python
