// Tensors as text, the way NumPy shows arrays.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>

#include "qkv/core/tensor.h"

namespace qkv {
namespace {

constexpr int64_t kAll = 1000;  // elements shown without cutting
constexpr int64_t kEdge = 3;    // of each axis when cut

struct Printer {
  const Tensor& tensor;
  bool cut = false;
  const char* format = "%.0f";
  size_t width = 0;

  // fn(index), and gap() where the middle of an axis is left out.
  template <class Fn, class Gap>
  void for_shown(int64_t n, Fn&& fn, Gap&& gap) const {
    const bool short_axis = !cut || n <= 2 * kEdge;
    for (int64_t i = 0; i < n; ++i) {
      if (!short_axis && i == kEdge) {
        gap();
        i = n - kEdge;
      }
      fn(i);
    }
  }

  template <class Fn>
  void visit(const Tensor& t, Fn&& fn) const {
    if (t.rank() == 0) return fn(t.item());
    for_shown(
        t.dim(0), [&](int64_t i) { visit(part(t, i), fn); }, [] {});
  }

  static Tensor part(const Tensor& t, int64_t i) {
    const auto tail = [](const Shape& s) { return Shape(std::span<const int64_t>(s.begin() + 1, s.end())); };
    return t.as_strided(tail(t.shape()), tail(t.strides()), t.storage_offset() + i * t.strides()[0]);
  }

  std::string text(double value) const {
    char buffer[40];
    std::snprintf(buffer, sizeof buffer, format, value);
    return buffer;
  }

  // One format for all: whole numbers, four decimals, or an exponent where those would hide digits.
  void choose_format() {
    double largest = 0, smallest = HUGE_VAL;
    bool whole = true;
    visit(tensor, [&](double v) {
      if (!std::isfinite(v)) return;
      whole = whole && v == std::nearbyint(v);
      largest = std::max(largest, std::abs(v));
      if (v != 0) smallest = std::min(smallest, std::abs(v));
    });
    if (largest >= 1e6 || (!whole && smallest < 1e-3)) {
      format = "%.4e";
    } else if (!whole) {
      format = "%.4f";
    }
    visit(tensor, [&](double v) { width = std::max(width, text(v).size()); });
  }

  void print(std::ostream& out, const Tensor& t, int depth) const {
    if (t.rank() == 0) {
      const std::string s = text(t.item());
      out << std::string(width - s.size(), ' ') << s;
      return;
    }
    // Rows of a matrix on lines of their own, with an empty line between matrices, and so on.
    const std::string between = t.rank() == 1 ? " "
                                              : std::string(static_cast<size_t>(t.rank() - 1), '\n') +
                                                    std::string(static_cast<size_t>(depth) + 1, ' ');
    out << '[';
    for_shown(
        t.dim(0),
        [&](int64_t i) {
          if (i > 0) out << between;
          print(out, part(t, i), depth + 1);
        },
        [&] { out << between << "..."; });
    out << ']';
  }
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  if (!tensor.defined()) return out << "undefined";
  Printer printer{tensor, tensor.numel() > kAll};
  printer.choose_format();
  printer.print(out, tensor, 0);
  return out << ' ' << name_of(tensor.dtype()) << ' ' << tensor.shape().str();
}

}  // namespace qkv
