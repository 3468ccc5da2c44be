// Address, sizes and strides of PyTorch's tensors; results as such.
#include "torch_tensors.h"

#include <cstdint>
#include <string>

#include "arrays.h"
#include "dlpack.h"
#include "errors.h"

namespace qkv::python {
namespace {

// What qkv.torch says of torch when it is imported. Lives as long as the process.
struct Torch {
  PyTypeObject* tensor = nullptr;
  PyObject *f32 = nullptr, *f64 = nullptr, *f16 = nullptr, *is_grad_enabled = nullptr, *from_dlpack = nullptr;
};
Torch torch;

// Names of attributes, made once.
struct Names {
  PyObject* dtype = PyUnicode_InternFromString("dtype");
  PyObject* is_cpu = PyUnicode_InternFromString("is_cpu");
  PyObject* is_neg = PyUnicode_InternFromString("is_neg");
  PyObject* requires_grad = PyUnicode_InternFromString("requires_grad");
  PyObject* data_ptr = PyUnicode_InternFromString("data_ptr");
  PyObject* shape = PyUnicode_InternFromString("shape");
  PyObject* stride = PyUnicode_InternFromString("stride");
};

const Names& names() {
  static const Names made;
  return made;
}

py::object got(PyObject* result) {
  if (result == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(result);
}
py::object attribute(const py::object& o, PyObject* name) { return got(PyObject_GetAttr(o.ptr(), name)); }
py::object called(const py::object& o, PyObject* name) { return got(PyObject_CallMethodNoArgs(o.ptr(), name)); }

std::string text(const py::object& o) { return py::str(o).cast<std::string>(); }

Shape numbers(const py::object& tuple, const char* name) {
  if (!PyTuple_Check(tuple.ptr())) dtype_error(std::string(name) + " has no sizes that can be read");
  Shape s;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple.ptr()); ++i) {
    s.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(tuple.ptr(), i)));
  }
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
  return s;
}

void check(const py::object& o, const char* name) {
  if (attribute(o, names().is_cpu).ptr() != Py_True) {
    dtype_error(std::string(name) + " is on " + text(o.attr("device")) + "; move it to the CPU first");
  }
  if (attribute(o, names().requires_grad).ptr() == Py_True &&
      got(PyObject_CallNoArgs(torch.is_grad_enabled)).ptr() == Py_True) {
    dtype_error(std::string(name) + " requires a gradient, which a NumPy result cannot have; use qkv.torch, or " +
                name + ".detach()");
  }
}

template <class T>
Tensor adopted(const py::object& o, const char* name) {
  const Shape shape = numbers(attribute(o, names().shape), name), strides = numbers(called(o, names().stride), name);
  const py::object address = called(o, names().data_ptr);
  auto* const data = static_cast<T*>(PyLong_AsVoidPtr(address.ptr()));
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
  if (reinterpret_cast<uintptr_t>(data) % alignof(T) != 0) return {};
  if (data == nullptr && shape.numel() > 0) dtype_error(std::string(name) + " has no memory of its own");
  return Tensor::adopt(data, shape, {}, strides);
}

}  // namespace

bool is_torch_tensor(const py::handle& object) {
  return torch.tensor != nullptr && PyObject_TypeCheck(object.ptr(), torch.tensor) != 0;
}

Tensor tensor_of_torch(const py::object& object, const char* name) {
  check(object, name);
  const py::object dtype = attribute(object, names().dtype);
  if (dtype.ptr() == torch.f16 || called(object, names().is_neg).ptr() == Py_True) return {};
  if (dtype.ptr() != torch.f32 && dtype.ptr() != torch.f64) {
    dtype_error(std::string(name) + " has dtype " + text(dtype) + "; expected float32, float64 or float16");
  }
  try {
    return dtype.ptr() == torch.f32 ? adopted<float>(object, name) : adopted<double>(object, name);
  } catch (const py::error_already_set&) {
    dtype_error(std::string(name) + " is a tensor with the layout " + text(object.attr("layout")) +
                " or without memory of its own; expected a dense one");
  }
}

py::object array_of_torch(const py::object& object, const char* name) {
  check(object, name);
  return object.attr("detach")().attr("resolve_neg")().attr("numpy")();
}

py::object to_torch(const Tensor& tensor) {
  return got(PyObject_CallOneArg(torch.from_dlpack, capsule_of(tensor).ptr()));
}

void add_torch_tensors(py::module_& m) {
  m.def("know_torch", [](const py::object& module, py::object from_dlpack) {
    const auto kept = [&](const char* name) { return py::object(module.attr(name)).release().ptr(); };
    torch = {reinterpret_cast<PyTypeObject*>(kept("Tensor")),
             kept("float32"),
             kept("float64"),
             kept("float16"),
             kept("is_grad_enabled"),
             from_dlpack.release().ptr()};
  });
}

}  // namespace qkv::python
