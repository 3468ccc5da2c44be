// Shape arithmetic: element counts, strides, broadcasting.
#include "qkv/base/shape.h"

#include <algorithm>

#include "qkv/base/error.h"

namespace qkv {

Shape::Shape(std::initializer_list<int64_t> sizes) {
  for (int64_t s : sizes) push_back(s);
}

Shape::Shape(std::span<const int64_t> sizes) {
  for (int64_t s : sizes) push_back(s);
}

void Shape::push_back(int64_t size) {
  if (rank_ == kMaxRank) throw ShapeError("[shape] more than 8 dimensions");
  sizes_[static_cast<size_t>(rank_++)] = size;
}

int64_t Shape::numel() const {
  int64_t n = 1;
  for (int64_t s : *this) n *= s;
  return n;
}

Shape Shape::contiguous_strides() const {
  Shape strides = *this;
  int64_t step = 1;
  for (int i = rank_ - 1; i >= 0; --i) {
    strides[i] = step;
    step *= (*this)[i];
  }
  return strides;
}

std::string Shape::str() const {
  std::string s = "[";
  for (int i = 0; i < rank_; ++i) {
    if (i > 0) s += ',';
    s += std::to_string((*this)[i]);
  }
  return s + "]";
}

bool operator==(const Shape& a, const Shape& b) {
  return a.rank_ == b.rank_ && std::equal(a.begin(), a.end(), b.begin());
}

Shape broadcast(const char* op, const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Shape out;
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    const int64_t sa = ia < 0 ? 1 : a[ia], sb = ib < 0 ? 1 : b[ib];
    if (sa != sb && sa != 1 && sb != 1) {
      throw ShapeError(std::string("[") + op + "] shapes do not broadcast: " + a.str() + " and " + b.str());
    }
    out.push_back(sa == 1 ? sb : sa);
  }
  return out;
}

}  // namespace qkv
