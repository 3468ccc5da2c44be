// Tensor: a strided view of f32 or f64 numbers that remembers how it was computed.
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "qkv/base/rng.h"
#include "qkv/base/shape.h"
#include "qkv/core/memory.h"

namespace qkv {

/// The type of a tensor's numbers.
enum class DType : uint8_t { f32, f64 };
/// "f32" or "f64".
const char* name_of(DType dtype);
/// Bytes of one number.
constexpr size_t size_of(DType dtype) { return dtype == DType::f32 ? sizeof(float) : sizeof(double); }

/// DTypeOf<float>::value is DType::f32.
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
/// and always takes the plain reference kernels. A const handle gives its numbers for reading only; a copy of it,
/// which is not const, also for writing.
class Tensor {
 public:
  /// Undefined: defined() is false, every other call throws ShapeError and names itself.
  Tensor() = default;

  static Tensor empty(const Shape& shape, DType dtype = DType::f32);               // numbers not set
  static Tensor zeros(const Shape& shape, DType dtype = DType::f32);               // all 0
  static Tensor full(const Shape& shape, double value, DType dtype = DType::f32);  // all the same
  static Tensor arange(int64_t n, DType dtype = DType::f32);                       // 0, 1, … n-1
  /// Throws ShapeError when the count differs from the shape's.
  static Tensor from(std::span<const float> values, const Shape& shape);
  static Tensor from(std::span<const double> values, const Shape& shape);
  static Tensor from(std::initializer_list<double> values, const Shape& shape, DType dtype = DType::f32);
  /// Independent draws of N(0, stddev²), in element order.
  static Tensor randn(const Shape& shape, Rng& rng, double stddev = 1.0, DType dtype = DType::f32);
  /// Independent draws, uniform in [low, high), in element order.
  static Tensor uniform(const Shape& shape, Rng& rng, double low, double high, DType dtype = DType::f32);

  /// Runs once, with the pointer given to adopt().
  using Deleter = std::function<void(void* data)>;
  /// A tensor on memory of others (a mapped file, a NumPy array), without copying it. `deleter` runs when the last
  /// tensor that shares the memory is gone, or when adopt() throws; an empty one leaves the memory to its owner, who
  /// keeps it until then. Strides count elements and may be 0 or negative; none: contiguous.
  static Tensor adopt(float* data, const Shape& shape, Deleter deleter, const Shape& strides = {});
  static Tensor adopt(double* data, const Shape& shape, Deleter deleter, const Shape& strides = {});

  bool defined() const { return impl_ != nullptr; }
  const Shape& shape() const;
  const Shape& strides() const;
  int rank() const;
  /// Size of one axis; a negative one counts from the end.
  int64_t dim(int i) const;
  int64_t numel() const;
  DType dtype() const;
  bool is_contiguous() const;

  /// First element. Throws ShapeError when T is not the tensor's dtype.
  template <class T>
  T* data() {
    return static_cast<T*>(first_of(DTypeOf<T>::value));
  }
  template <class T>
  const T* data() const {
    return static_cast<const T*>(first_of(DTypeOf<T>::value));
  }
  float* f32() { return data<float>(); }
  const float* f32() const { return data<float>(); }
  double* f64() { return data<double>(); }
  const double* f64() const { return data<double>(); }

  /// The value of a one-element tensor.
  double item() const;
  /// One element by index, one index per dimension.
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
  /// Whether nobody else shares this one's memory: no tensor, no former owner.
  bool owns_memory_alone() const;
  /// Whether there is no other handle of it either, so that nobody would see it change.
  bool is_only_handle() const { return impl_.use_count() == 1 && owns_memory_alone(); }
  /// Overwrites the numbers (shapes must agree); history is not touched. For initialisation and loading.
  void copy_from(const Tensor& source);
  /// Adds another tensor's numbers (same shape and dtype) in place; history is not touched. For gradients.
  void add_from(const Tensor& source);
  /// Overwrites all numbers; history is not touched.
  void fill(double value);

  // Autograd.
  bool requires_grad() const;
  /// Marks a leaf whose gradient is wanted. Returns *this.
  Tensor& set_requires_grad(bool wanted);
  /// The accumulated gradient; undefined before the first backward.
  Tensor grad() const;
  /// Replaces it.
  void set_grad(const Tensor& grad);
  /// Forgets it.
  void zero_grad() { set_grad(Tensor()); }
  /// Gradients of this scalar for every leaf it depends on, added to their grad().
  void backward() const;
  /// The same for a tensor of any shape, given its gradient.
  void backward(const Tensor& d_this) const;

  /// The recorded op that made this tensor, null for a leaf, and which of its results this is.
  const std::shared_ptr<Node>& node() const;
  int output_index() const;
  /// Whether both are handles of one tensor.
  bool same_as(const Tensor& other) const { return impl_ == other.impl_; }

 private:
  struct Impl;
  Impl& use(const char* call) const;
  [[noreturn]] static void undefined(const char* call);
  [[noreturn]] void wrong_dtype(DType wanted) const;
  void* first_of(DType wanted) const;
  static Tensor adopt(void* data, DType dtype, const Shape& shape, Deleter deleter, const Shape& strides);
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

inline Tensor::Impl& Tensor::use(const char* call) const {
  if (!impl_) [[unlikely]]
    undefined(call);
  return *impl_;
}

inline const Shape& Tensor::shape() const { return use("shape").shape; }
inline const Shape& Tensor::strides() const { return use("strides").strides; }
inline int Tensor::rank() const { return use("rank").shape.rank(); }
inline int64_t Tensor::dim(int i) const { return use("dim").shape[i]; }
inline int64_t Tensor::numel() const { return use("numel").shape.numel(); }
inline DType Tensor::dtype() const { return use("dtype").dtype; }
inline int64_t Tensor::storage_offset() const { return use("storage_offset").offset; }
inline Tensor Tensor::grad() const { return use("grad").grad; }
inline void Tensor::set_grad(const Tensor& grad) { use("set_grad").grad = grad; }
inline const std::shared_ptr<Node>& Tensor::node() const { return use("node").node; }
inline int Tensor::output_index() const { return use("output_index").output_index; }
inline void* Tensor::first_of(DType wanted) const {
  const Impl& impl = use("data");
  if (impl.dtype != wanted) [[unlikely]]
    wrong_dtype(wanted);
  return static_cast<std::byte*>(impl.storage->data()) + impl.offset * static_cast<int64_t>(size_of(wanted));
}

/// The numbers as NumPy prints them, cut to the first and last three of each axis when there are more than a thousand,
/// then dtype and shape: "[1 2.5] f32 [2]".
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

}  // namespace qkv
