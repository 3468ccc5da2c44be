// Shape: the sizes of a tensor, up to eight dimensions, without heap memory.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace qkv {

/// Sizes (or strides) of a tensor. Negative indices count from the end: shape[-1] is the last size.
class Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<int64_t> sizes);
  explicit Shape(std::span<const int64_t> sizes);

  int rank() const { return rank_; }
  int64_t operator[](int i) const { return sizes_[static_cast<size_t>(i < 0 ? i + rank_ : i)]; }
  int64_t& operator[](int i) { return sizes_[static_cast<size_t>(i < 0 ? i + rank_ : i)]; }
  const int64_t* begin() const { return sizes_.data(); }
  const int64_t* end() const { return sizes_.data() + rank_; }

  /// Product of all sizes; 1 for rank 0.
  int64_t numel() const;
  /// Appends one size. Throws ShapeError past kMaxRank.
  void push_back(int64_t size);
  /// Row-major strides of a contiguous tensor of this shape.
  Shape contiguous_strides() const;
  /// "[2,8,16,64]".
  std::string str() const;

  friend bool operator==(const Shape& a, const Shape& b);

 private:
  std::array<int64_t, kMaxRank> sizes_{};
  int rank_ = 0;
};

/// The NumPy broadcast of two shapes. Throws ShapeError naming `op` and both shapes.
Shape broadcast(const char* op, const Shape& a, const Shape& b);

}  // namespace qkv
