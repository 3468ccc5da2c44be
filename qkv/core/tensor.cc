// Tensor: creation, views, element access, conversion.
#include "qkv/core/tensor.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "qkv/base/budget.h"
#include "qkv/base/error.h"
#include "qkv/core/autograd.h"
#include "qkv/core/strided_loop.h"

namespace qkv {

const char* name_of(DType dtype) { return dtype == DType::f32 ? "f32" : "f64"; }

namespace {

// What memory could ever hold in f64.
constexpr int64_t kMostElements = std::min<int64_t>(int64_t{1} << 48, std::numeric_limits<ptrdiff_t>::max() / 8);

void check_sizes(const Shape& shape) {
  int64_t n = 1;
  for (int64_t s : shape) {
    if (s < 0) throw ShapeError("[tensor] negative size in " + shape.str());
    if (__builtin_mul_overflow(n, std::max<int64_t>(1, s), &n) || n > kMostElements) {
      throw ShapeError("[tensor] too large: " + shape.str());
    }
  }
}

constexpr int64_t kBetweenChecks = 1 << 16;  // of the budget, in random numbers

template <class Source>
void check_count(const Source& values, const Shape& shape) {
  if (static_cast<int64_t>(values.size()) != shape.numel()) {
    throw ShapeError("[tensor] " + std::to_string(values.size()) + " values do not fill " + shape.str());
  }
}

template <class To, class From>
Tensor converted(std::span<const From> values, const Shape& shape) {
  check_count(values, shape);
  Tensor t = Tensor::empty(shape, DTypeOf<To>::value);
  To* out = t.data<To>();
  for (size_t i = 0; i < values.size(); ++i) out[i] = static_cast<To>(values[i]);
  return t;
}

// fn(T*), or fn(const T*) for a const tensor, with the tensor's own type.
template <class AnyTensor, class Fn>
void with_data(AnyTensor& t, Fn&& fn) {
  if (t.dtype() == DType::f32) {
    fn(t.f32());
  } else {
    fn(t.f64());
  }
}

}  // namespace

Tensor Tensor::empty(const Shape& shape, DType dtype) {
  check_sizes(shape);
  Tensor t;
  t.impl_ = std::make_shared<Impl>();
  t.impl_->storage = std::make_shared<Storage>(static_cast<size_t>(shape.numel()) * size_of(dtype));
  t.impl_->shape = shape;
  t.impl_->strides = shape.contiguous_strides();
  t.impl_->dtype = dtype;
  return t;
}

Tensor Tensor::zeros(const Shape& shape, DType dtype) {
  Tensor t = empty(shape, dtype);
  std::memset(t.impl_->storage->data(), 0, static_cast<size_t>(t.numel()) * size_of(dtype));
  return t;
}

Tensor Tensor::full(const Shape& shape, double value, DType dtype) {
  Tensor t = empty(shape, dtype);
  t.fill(value);
  return t;
}

Tensor Tensor::arange(int64_t n, DType dtype) {
  Tensor t = empty({n}, dtype);
  with_data(t, [&](auto* p) {
    for (int64_t i = 0; i < n; ++i) p[i] = static_cast<std::remove_pointer_t<decltype(p)>>(i);
  });
  return t;
}

Tensor Tensor::from(std::span<const float> values, const Shape& shape) { return converted<float>(values, shape); }
Tensor Tensor::from(std::span<const double> values, const Shape& shape) { return converted<double>(values, shape); }
Tensor Tensor::from(std::initializer_list<double> values, const Shape& shape, DType dtype) {
  const std::span<const double> all(values.begin(), values.size());
  return dtype == DType::f32 ? converted<float>(all, shape) : converted<double>(all, shape);
}

Tensor Tensor::randn(const Shape& shape, Rng& rng, double stddev, DType dtype) {
  Tensor t = empty(shape, dtype);
  with_data(t, [&](auto* p) {
    for (int64_t i = 0; i < t.numel(); ++i) {
      if (i % kBetweenChecks == 0) check_budget();
      p[i] = static_cast<std::remove_pointer_t<decltype(p)>>(stddev * rng.normal());
    }
  });
  return t;
}

Tensor Tensor::uniform(const Shape& shape, Rng& rng, double low, double high, DType dtype) {
  Tensor t = empty(shape, dtype);
  with_data(t, [&](auto* p) {
    for (int64_t i = 0; i < t.numel(); ++i) {
      p[i] = static_cast<std::remove_pointer_t<decltype(p)>>(low + (high - low) * rng.uniform());
    }
  });
  return t;
}

Tensor Tensor::adopt(float* data, const Shape& shape, Deleter deleter, const Shape& strides) {
  return adopt(data, DType::f32, shape, std::move(deleter), strides);
}

Tensor Tensor::adopt(double* data, const Shape& shape, Deleter deleter, const Shape& strides) {
  return adopt(data, DType::f64, shape, std::move(deleter), strides);
}

Tensor Tensor::adopt(void* data, DType dtype, const Shape& shape, Deleter deleter, const Shape& strides) {
  Tensor t;
  t.impl_ = std::make_shared<Impl>();
  t.impl_->storage = std::make_shared<Storage>(data, std::move(deleter));
  check_sizes(shape);
  if (data == nullptr && shape.numel() > 0) throw ShapeError("[adopt] no memory for " + shape.str());
  if (reinterpret_cast<uintptr_t>(data) % size_of(dtype) != 0) {
    throw ShapeError(std::string("[adopt] the memory is not aligned for ") + name_of(dtype) + "; copy it");
  }
  if (strides.rank() > 0 && strides.rank() != shape.rank()) {
    throw ShapeError("[adopt] strides " + strides.str() + " for shape " + shape.str());
  }
  t.impl_->shape = shape;
  t.impl_->strides = strides.rank() > 0 ? strides : shape.contiguous_strides();
  t.impl_->dtype = dtype;
  return t;
}

bool Tensor::is_contiguous() const {
  const Shape &sizes = use("is_contiguous").shape, &steps = impl_->strides;
  int64_t step = 1;
  for (int i = sizes.rank() - 1; i >= 0; --i) {
    if (sizes[i] != 1 && steps[i] != step) return false;
    step *= sizes[i];
  }
  return true;
}

bool Tensor::owns_memory_alone() const {
  const Impl& impl = use("owns_memory_alone");
  return impl.storage.use_count() == 1 && !impl.storage->adopted();
}

void Tensor::undefined(const char* call) {
  throw ShapeError(std::string("[tensor] .") + call + "() of an undefined tensor; a default-made Tensor holds nothing");
}

void Tensor::wrong_dtype(DType wanted) const {
  throw ShapeError(std::string("[tensor] ") + name_of(dtype()) + " tensor " + shape().str() + " read as " +
                   name_of(wanted) + "; convert it with to()");
}

double Tensor::item() const {
  if (use("item").shape.numel() != 1) throw ShapeError("[item] expected one element, got shape " + shape().str());
  return dtype() == DType::f32 ? static_cast<double>(*f32()) : *f64();
}

double Tensor::at(std::initializer_list<int64_t> index) const {
  if (static_cast<int>(index.size()) != use("at").shape.rank())
    throw ShapeError("[at] wrong number of indices for " + shape().str());
  int64_t offset = 0;
  int d = 0;
  for (int64_t i : index) {
    if (i < 0 || i >= dim(d)) throw ShapeError("[at] index " + std::to_string(i) + " outside " + shape().str());
    offset += i * strides()[d++];
  }
  return dtype() == DType::f32 ? static_cast<double>(f32()[offset]) : f64()[offset];
}

std::vector<float> Tensor::to_vector() const {
  use("to_vector");
  const Tensor t = to(DType::f32);
  return {t.f32(), t.f32() + t.numel()};
}

std::vector<double> Tensor::to_doubles() const {
  use("to_doubles");
  const Tensor t = to(DType::f64);
  return {t.f64(), t.f64() + t.numel()};
}

Tensor Tensor::as_strided(const Shape& shape, const Shape& strides, int64_t offset) const {
  const Impl& from = use("as_strided");
  Tensor t;
  t.impl_ = std::make_shared<Impl>();
  t.impl_->storage = from.storage;
  t.impl_->shape = shape;
  t.impl_->strides = strides;
  t.impl_->offset = offset;
  t.impl_->dtype = from.dtype;
  return t;
}

Tensor Tensor::detach() const {
  const Impl& from = use("detach");
  return as_strided(from.shape, from.strides, from.offset);
}

Tensor Tensor::clone() const { return to(use("clone").dtype); }

Tensor Tensor::to(DType dtype) const {
  Tensor out = empty(use("to").shape, dtype);
  out.copy_from(*this);
  return out;
}

void Tensor::copy_from(const Tensor& source) {
  if (!(source.shape() == use("copy_from").shape)) {
    throw ShapeError("[copy] shapes differ: " + shape().str() + " and " + source.shape().str());
  }
  const StridedLoop<2> loop(shape(), {strides(), source.strides()});
  with_data(*this, [&](auto* to) {
    using To = std::remove_pointer_t<decltype(to)>;
    with_data(source, [&](auto* from) {
      loop.run([&](const std::array<int64_t, 2>& at, int64_t n, const std::array<int64_t, 2>& step) {
        auto* o = to + at[0];
        const auto* p = from + at[1];
        if (step[0] == 1 && step[1] == 1) {
          for (int64_t i = 0; i < n; ++i) o[i] = static_cast<To>(p[i]);
        } else {
          for (int64_t i = 0; i < n; ++i) o[i * step[0]] = static_cast<To>(p[i * step[1]]);
        }
      });
    });
  });
}

void Tensor::add_from(const Tensor& source) {
  if (!(source.shape() == use("add_from").shape) || source.dtype() != dtype()) {
    throw ShapeError("[add_from] tensors differ: " + shape().str() + " and " + source.shape().str());
  }
  const StridedLoop<2> loop(shape(), {strides(), source.strides()});
  with_data(*this, [&](auto* to) {
    const auto* from = source.data<std::remove_pointer_t<decltype(to)>>();
    loop.run([&](const std::array<int64_t, 2>& at, int64_t n, const std::array<int64_t, 2>& step) {
      auto* o = to + at[0];
      const auto* p = from + at[1];
      if (step[0] == 1 && step[1] == 1) {
        for (int64_t i = 0; i < n; ++i) o[i] += p[i];
      } else {
        for (int64_t i = 0; i < n; ++i) o[i * step[0]] += p[i * step[1]];
      }
    });
  });
}

void Tensor::fill(double value) {
  const Impl& impl = use("fill");
  const StridedLoop<1> loop(impl.shape, {impl.strides});
  with_data(*this, [&](auto* p) {
    const auto v = static_cast<std::remove_pointer_t<decltype(p)>>(value);
    loop.run([&](const std::array<int64_t, 1>& at, int64_t n, const std::array<int64_t, 1>& step) {
      for (int64_t i = 0; i < n; ++i) p[at[0] + i * step[0]] = v;
    });
  });
}

bool Tensor::requires_grad() const { return use("requires_grad").leaf_requires_grad || impl_->node; }

Tensor& Tensor::set_requires_grad(bool wanted) {
  if (use("set_requires_grad").node) throw Error("[set_requires_grad] only leaves can be marked; detach() first");
  impl_->leaf_requires_grad = wanted;
  return *this;
}

void Tensor::backward() const {
  if (use("backward").shape.numel() != 1) throw ShapeError("[backward] needs a gradient for shape " + shape().str());
  backward(full(shape(), 1.0, dtype()));
}

void Tensor::backward(const Tensor& d_this) const { qkv::backward({*this}, {d_this}); }

}  // namespace qkv
