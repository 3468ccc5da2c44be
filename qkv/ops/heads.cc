// Splitting columns and turning pairs.
#include "qkv/ops/heads.h"

#include <algorithm>
#include <cmath>

#include "qkv/core/autograd.h"
#include "qkv/ops/common.h"

namespace qkv {
namespace {

constexpr int64_t kRowBlock = 64;
constexpr double kBase = 10000;  // of rotary_columns

// cos and sin of the positions in use, [positions, D/2] each.
template <class T>
struct Turns {
  Turns(std::span<const int64_t> positions, int64_t D, double base) : half(D / 2) {
    if (positions.empty()) return;
    const auto [low, high] = std::minmax_element(positions.begin(), positions.end());
    first = *low;
    std::vector<double> rate;
    for (int64_t j = 0; j < half; ++j) {
      rate.push_back(std::pow(base, -2.0 * static_cast<double>(j) / static_cast<double>(D)));
    }
    for (int64_t p = *low; p <= *high; ++p) {
      for (double r : rate) {
        cosine.push_back(static_cast<T>(std::cos(static_cast<double>(p) * r)));
        sine.push_back(static_cast<T>(std::sin(static_cast<double>(p) * r)));
      }
    }
  }
  const T* cosines(int64_t p) const { return cosine.data() + (p - first) * half; }
  const T* sines(int64_t p) const { return sine.data() + (p - first) * half; }

  int64_t half = 0, first = 0;
  std::vector<T> cosine, sine;
};

// Heads of `D` side by side in rows `stride` apart.
template <class T>
struct Heads {
  T* data;
  int64_t row_stride, head_stride;
};

struct TurnSizes {
  int64_t rows, heads, D;
  int64_t copied;  // columns after the heads that are copied as they are
};

// to = from with its pairs turned by sign·θ.
template <class T>
void turn(const TurnSizes& n, Heads<const T> from, Heads<T> to, std::span<const int64_t> positions,
          const Turns<T>& turns, T sign) {
  const int64_t half = n.D / 2;
  parallel_blocks(n.rows, kRowBlock, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t p = positions[static_cast<size_t>(t)];
      const T *c = turns.cosines(p), *s = turns.sines(p);
      for (int64_t h = 0; h < n.heads; ++h) {
        const T* x = from.data + t * from.row_stride + h * from.head_stride;
        T* y = to.data + t * to.row_stride + h * to.head_stride;
        for (int64_t j = 0; j < half; ++j) {
          const T a = x[j], b = x[j + half];
          y[j] = a * c[j] - sign * b * s[j];
          y[j + half] = b * c[j] + sign * a * s[j];
        }
      }
      std::copy_n(from.data + t * from.row_stride + n.heads * n.D, n.copied,
                  to.data + t * to.row_stride + n.heads * n.D);
    }
  });
}

void check_positions(const char* op, const Tensor& x, std::span<const int64_t> positions) {
  if (x.dim(0) != static_cast<int64_t>(positions.size())) {
    shape_error(op, "x=" + x.shape().str() + " with " + std::to_string(positions.size()) + " positions");
  }
  for (int64_t p : positions) {
    if (p < 0) shape_error(op, "negative position " + std::to_string(p));
  }
}

// part (+)= column c… of into.
template <class T>
void put_columns(Tensor& into, int64_t first, const Tensor& part, bool fresh) {
  const int64_t C = into.dim(1), W = part.dim(1);
  const T* from = part.data<T>();
  T* to = into.data<T>() + first;
  parallel_blocks(into.dim(0), kRowBlock, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      if (fresh) {
        std::copy_n(from + t * W, W, to + t * C);
      } else {
        for (int64_t j = 0; j < W; ++j) to[t * C + j] += from[t * W + j];
      }
    }
  });
}

}  // namespace

std::vector<Tensor> split_columns(const Tensor& x, std::span<const int64_t> widths) {
  check_defined("split_columns", x);
  int64_t total = 0;
  for (int64_t w : widths) total += w;
  if (x.rank() != 2 || total != x.dim(1)) {
    shape_error("split_columns", "x=" + x.shape().str() + " into widths that add up to " + std::to_string(total));
  }
  std::vector<Tensor> parts;
  std::vector<int64_t> first;
  int64_t at = 0;
  for (int64_t w : widths) {
    parts.push_back(x.as_strided({x.dim(0), w}, x.strides(), x.storage_offset() + at * x.strides()[1]));
    first.push_back(at);
    at += w;
  }
  return record(
      "split_columns", parts, {x},
      [first, shapes = std::vector<int64_t>(widths.begin(), widths.end())](const std::vector<Tensor>& d_parts,
                                                                           Grads& d) {
        bool fresh = false;
        Tensor d_x = d.buffer(0, fresh);
        for (size_t i = 0; i < d_parts.size(); ++i) {
          const bool arrived = d_parts[i].defined();
          if (!arrived && !fresh) continue;
          const Tensor part = arrived ? dense(d_parts[i]) : Tensor::zeros({d_x.dim(0), shapes[i]}, d_x.dtype());
          dispatch(d_x.dtype(), [&](auto t) { put_columns<decltype(t)>(d_x, first[i], part, fresh); });
        }
      });
}

Tensor rotary(const Tensor& x_in, std::span<const int64_t> positions, double base) {
  check_defined("rotary", x_in);
  if (x_in.rank() != 3 || x_in.dim(2) % 2 != 0) {
    shape_error("rotary", "x=" + x_in.shape().str() + "; expected [T,H,D] with D even");
  }
  check_positions("rotary", x_in, positions);
  const Tensor x = x_in.strides()[2] == 1 || x_in.dim(2) <= 1 ? x_in.detach() : x_in.clone();
  const TurnSizes n{x.dim(0), x.dim(1), x.dim(2), 0};
  const auto turned = [n, base, at = std::vector<int64_t>(positions.begin(), positions.end())](const Tensor& from,
                                                                                               double sign) {
    Tensor to = Tensor::empty(from.shape(), from.dtype());
    dispatch(from.dtype(), [&](auto t) {
      using T = decltype(t);
      turn<T>(n, {from.data<T>(), from.strides()[0], from.strides()[1]}, {to.data<T>(), n.heads * n.D, n.D}, at,
              Turns<T>(at, n.D, base), static_cast<T>(sign));
    });
    return to;
  };
  return record("rotary", turned(x, 1), {x_in},
                [turned](const Tensor& d_out, Grads& d) { d.add(0, turned(dense(d_out), -1)); });
}

Tensor rotary_columns(const Tensor& x_in, int64_t heads, int64_t D, std::span<const int64_t> positions) {
  check_defined("rotary_columns", x_in);
  if (x_in.rank() != 2 || heads < 0 || D < 0 || D % 2 != 0 || heads * D > x_in.dim(1)) {
    shape_error("rotary_columns", "x=" + x_in.shape().str() + " with " + std::to_string(heads) + " heads of " +
                                      std::to_string(D) + "; expected [T,W] with W ≥ heads·D and D even");
  }
  check_positions("rotary_columns", x_in, positions);
  const int64_t W = x_in.dim(1);
  const TurnSizes n{x_in.dim(0), heads, D, W - heads * D};
  const auto turned = [n, W, at = std::vector<int64_t>(positions.begin(), positions.end())](const Tensor& from,
                                                                                            double sign) {
    Tensor to = Tensor::empty(from.shape(), from.dtype());
    dispatch(from.dtype(), [&](auto t) {
      using T = decltype(t);
      turn<T>(n, {from.data<T>(), W, n.D}, {to.data<T>(), W, n.D}, at, Turns<T>(at, n.D, kBase), static_cast<T>(sign));
    });
    return to;
  };
  return record("rotary_columns", turned(dense(x_in), 1), {x_in},
                [turned](const Tensor& d_out, Grads& d) { d.add(0, turned(dense(d_out), -1)); });
}

}  // namespace qkv
