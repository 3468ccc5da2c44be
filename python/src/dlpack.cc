// From a DLPack capsule to a NumPy array on the same memory, and from a tensor to a capsule.
#include "dlpack.h"

#include <dlpack/dlpack.h>

#include <memory>
#include <string>
#include <vector>

#include "arrays.h"

namespace qkv::python {
namespace {

const char* const kUnused = "dltensor";
const char* const kUsed = "used_dltensor";

py::dtype dtype_of(const DLDataType& type, const std::string& name) {
  const auto whole = [&](const char* letter) { return py::dtype(letter + std::to_string(type.bits / 8)); };
  const bool bytes = type.lanes == 1 && type.bits % 8 == 0 && type.bits <= 64;
  if (bytes && type.code == kDLFloat) return whole("f");
  if (bytes && type.code == kDLInt) return whole("i");
  if (bytes && type.code == kDLUInt) return whole("u");
  constexpr int kBool = 6;  // DLPack 1.0's code
  if (bytes && type.code == kBool) return py::dtype("?");
  dtype_error(name + " is of a type that NumPy does not have (DLPack code " + std::to_string(type.code) + ", " +
              std::to_string(type.bits) + " bits); expected float32, float64 or float16");
}

void check_device(const py::object& object, const char* name) {
  if (!py::hasattr(object, "__dlpack_device__")) return;
  const py::tuple device = object.attr("__dlpack_device__")();
  const int type = device[0].cast<int>();
  if (type == kDLCPU || type == kDLCUDAHost || type == kDLROCMHost) return;
  dtype_error(std::string(name) + " is on another device (DLPack device " + std::to_string(type) +
              "); move it to the CPU first");
}

}  // namespace

py::array array_from_dlpack(const py::object& object, const char* name) {
  check_device(object, name);
  const py::object capsule = object.attr("__dlpack__")();
  if (PyCapsule_IsValid(capsule.ptr(), kUnused) == 0) {
    dtype_error(std::string(name) + " has a __dlpack__ that gives no unused capsule");
  }
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kUnused));
  const DLTensor& t = managed->dl_tensor;
  const py::dtype dtype = dtype_of(t.dtype, name);
  const int64_t item = dtype.itemsize();
  std::vector<py::ssize_t> shape(t.shape, t.shape + t.ndim), strides(shape.size());
  int64_t dense = item;
  for (int i = t.ndim - 1; i >= 0; --i) {
    strides[static_cast<size_t>(i)] = t.strides != nullptr ? t.strides[i] * item : dense;
    dense *= t.shape[i];
  }
  const py::capsule owner(managed, [](void* p) {
    auto* m = static_cast<DLManagedTensor*>(p);
    if (m->deleter != nullptr) m->deleter(m);
  });
  if (PyCapsule_SetName(capsule.ptr(), kUsed) != 0) throw py::error_already_set();
  return {dtype, shape, strides, static_cast<char*>(t.data) + t.byte_offset, owner};
}

py::object capsule_of(const Tensor& tensor) {
  struct Owner {
    Tensor tensor;
    std::vector<int64_t> shape, strides;
    DLManagedTensor managed{};
  };
  auto owner = std::make_unique<Owner>(Owner{tensor, {}, {}, {}});
  for (int i = 0; i < tensor.rank(); ++i) {
    owner->shape.push_back(tensor.dim(i));
    owner->strides.push_back(tensor.strides()[i]);
  }
  const bool single = tensor.dtype() == DType::f32;
  DLTensor& t = owner->managed.dl_tensor;
  t.data = single ? static_cast<void*>(owner->tensor.f32()) : owner->tensor.f64();
  t.device = {kDLCPU, 0};
  t.ndim = tensor.rank();
  t.dtype = {kDLFloat, static_cast<uint8_t>(single ? 32 : 64), 1};
  t.shape = owner->shape.data();
  t.strides = owner->strides.data();
  owner->managed.manager_ctx = owner.get();
  owner->managed.deleter = [](DLManagedTensor* m) { delete static_cast<Owner*>(m->manager_ctx); };
  // Whoever takes it renames the capsule, and calls the deleter himself.
  PyObject* const made = PyCapsule_New(&owner->managed, kUnused, [](PyObject* capsule) {
    if (PyCapsule_IsValid(capsule, kUnused) == 0) return;
    auto* m = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kUnused));
    m->deleter(m);
  });
  if (made == nullptr) throw py::error_already_set();
  owner.release();
  return py::reinterpret_steal<py::object>(made);
}

}  // namespace qkv::python
