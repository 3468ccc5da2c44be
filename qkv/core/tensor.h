// Tensor: a strided view of f32 or f64 numbers that remembers how it was computed.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "qkv/base/rng.h"
#include "qkv/base/shape.h"
#include "qkv/core/memory.h"

namespace qkv {

enum class DType : uint8_t { f32, f64 };
const char* name_of(DType dtype);
size_t size_of(DType dtype);

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};

struct Node;  // autograd.h

/// A handle: copies share the same numbers and the same gradient. Training runs in f32; f64 is for checking,
/// and always takes the plain reference kernels.
class Tensor {
 public:
  /// Undefined: defined() is false, every other call is an error.
  Tensor() = default;

  static Tensor empty(const Shape& shape, DType dtype = DType::f32);  // numbers not set
  static Tensor zeros(const Shape& shape, DType dtype = DType::f32);
  static Tensor full(const Shape& shape, double value, DType dtype = DType::f32);
  static Tensor arange(int64_t n, DType dtype = DType::f32);
  /// Throws ShapeError when the count differs from the shape's.
  static Tensor from(std::span<const float> values, const Shape& shape);
  static Tensor from(std::span<const double> values, const Shape& shape);
  static Tensor from(std::initializer_list<double> values, const Shape& shape, DType dtype = DType::f32);
  /// Independent draws of N(mean, stddev²) / uniform in [low, high), in element order.
  static Tensor randn(const Shape& shape, Rng& rng, double stddev = 1.0, DType dtype = DType::f32);
  static Tensor uniform(const Shape& shape, Rng& rng, double low, double high, DType dtype = DType::f32);

  bool defined() const { return impl_ != nullptr; }
  const Shape& shape() const;
  const Shape& strides() const;
  int rank() const { return shape().rank(); }
  int64_t dim(int i) const { return shape()[i]; }
  int64_t numel() const { return shape().numel(); }
  DType dtype() const;
  bool is_contiguous() const;

  /// First element. Throws ShapeError when T is not the tensor's dtype.
  template <class T>
  T* data() const {
    check_dtype(DTypeOf<T>::value);
    return static_cast<T*>(raw_data()) + storage_offset();
  }
  float* f32() const { return data<float>(); }
  double* f64() const { return data<double>(); }

  /// The value of a one-element tensor.
  double item() const;
  /// One element by index, one index a dimension.
  double at(std::initializer_list<int64_t> index) const;
  /// All elements in row-major order.
  std::vector<float> to_vector() const;
  std::vector<double> to_doubles() const;

  /// A view without history: same numbers, no gradient.
  Tensor detach() const;
  /// A contiguous copy without history.
  Tensor clone() const;
  /// A contiguous copy in another dtype, without history.
  Tensor to(DType dtype) const;
  /// A view of the same storage; no history. The building block of the differentiable view ops.
  Tensor as_strided(const Shape& shape, const Shape& strides, int64_t offset) const;
  int64_t storage_offset() const;
  /// Whether no other tensor shares this one's memory.
  bool owns_memory_alone() const;
  /// Overwrites the numbers (shapes must agree); history is not touched. For initialisation and loading.
  void copy_from(const Tensor& source);
  /// Adds another tensor's numbers (same shape and dtype) in place; history is not touched. For gradients.
  void add_from(const Tensor& source);
  void fill(double value);

  // Autograd.
  bool requires_grad() const;
  /// Marks a leaf whose gradient is wanted. Returns *this.
  Tensor& set_requires_grad(bool wanted);
  /// The accumulated gradient; undefined before the first backward.
  Tensor grad() const;
  void set_grad(const Tensor& grad);
  void zero_grad() { set_grad(Tensor()); }
  /// Gradients of this scalar for every leaf it depends on, added to their grad().
  void backward() const;
  /// The same for a tensor of any shape, given its gradient.
  void backward(const Tensor& d_this) const;

  const std::shared_ptr<Node>& node() const;
  int output_index() const;
  bool same_as(const Tensor& other) const { return impl_ == other.impl_; }

 private:
  struct Impl;
  void* raw_data() const;
  void check_dtype(DType wanted) const;
  friend Tensor attach(const Tensor& out, std::shared_ptr<Node> node, int output_index);
  friend struct GradAccess;

  std::shared_ptr<Impl> impl_;
};

struct Tensor::Impl {
  std::shared_ptr<Storage> storage;
  Shape shape, strides;
  int64_t offset = 0;
  DType dtype = DType::f32;
  bool leaf_requires_grad = false;
  int output_index = 0;
  std::shared_ptr<Node> node;
  Tensor grad;
};

inline const Shape& Tensor::shape() const { return impl_->shape; }
inline const Shape& Tensor::strides() const { return impl_->strides; }
inline DType Tensor::dtype() const { return impl_->dtype; }
inline int64_t Tensor::storage_offset() const { return impl_->offset; }
inline bool Tensor::owns_memory_alone() const { return impl_->storage.use_count() == 1; }
inline Tensor Tensor::grad() const { return impl_->grad; }
inline void Tensor::set_grad(const Tensor& grad) { impl_->grad = grad; }
inline const std::shared_ptr<Node>& Tensor::node() const { return impl_->node; }
inline int Tensor::output_index() const { return impl_->output_index; }
inline void* Tensor::raw_data() const { return impl_->storage->data(); }

}  // namespace qkv
