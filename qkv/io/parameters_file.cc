// Saving and loading named tensors.
#include "qkv/io/parameters_file.h"

#include <cstring>
#include <set>

#include "qkv/base/error.h"

namespace qkv {
namespace {

const char* dtype_name(DType dtype) { return dtype == DType::f32 ? "F32" : "F64"; }

void* first_byte(Tensor t) {
  return t.dtype() == DType::f32 ? static_cast<void*>(t.f32()) : static_cast<void*>(t.f64());
}

size_t byte_count(const Tensor& t) { return static_cast<size_t>(t.numel()) * size_of(t.dtype()); }

void check_fits(const SafetensorsFile& file, const std::vector<NamedParameter>& tensors) {
  std::set<std::string> expected;
  for (const NamedParameter& p : tensors) {
    expected.insert(p.name);
    const Safetensor* found = file.find(p.name);
    if (found == nullptr) {
      throw IoError(file.name() + ": tensor '" + p.name + "' is missing; the file belongs to another model");
    }
    if (!(found->shape == p.value.shape()) || found->dtype != dtype_name(p.value.dtype())) {
      throw IoError(file.name() + ": tensor '" + p.name + "' is " + found->dtype + " " + found->shape.str() +
                    ", the model has " + dtype_name(p.value.dtype()) + " " + p.value.shape().str());
    }
  }
  for (const Safetensor& t : file.tensors()) {
    if (!expected.contains(t.name)) {
      throw IoError(file.name() + ": tensor '" + t.name + "' has no place in this model");
    }
  }
}

}  // namespace

void save_parameters(const std::string& path, const std::vector<NamedParameter>& tensors,
                     const SafetensorsMetadata& metadata) {
  std::vector<SafetensorView> views;
  std::vector<Tensor> dense;  // keeps copies of strided tensors alive until they are written
  for (const NamedParameter& p : tensors) {
    dense.push_back(p.value.is_contiguous() ? p.value : p.value.clone());
    const auto* data = static_cast<const std::byte*>(first_byte(dense.back()));
    views.push_back({p.name, dtype_name(p.value.dtype()), p.value.shape(), {data, byte_count(p.value)}});
  }
  save_safetensors(path, views, metadata);
}

void load_parameters(const std::string& path, const std::vector<NamedParameter>& tensors) {
  load_parameters(SafetensorsFile::load(path), tensors);
}

void load_parameters(const SafetensorsFile& file, const std::vector<NamedParameter>& tensors) {
  check_fits(file, tensors);
  for (const NamedParameter& p : tensors) {
    const std::span<const std::byte> bytes = file.bytes(file.at(p.name));
    Tensor value = Tensor::empty(p.value.shape(), p.value.dtype());
    if (!bytes.empty()) std::memcpy(first_byte(value), bytes.data(), bytes.size());
    Tensor(p.value).copy_from(value);
  }
}

}  // namespace qkv
