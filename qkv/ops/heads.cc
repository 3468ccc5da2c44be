// Splitting columns and turning pairs.
#include "qkv/ops/heads.h"

#include <algorithm>
#include <cmath>

#include "qkv/core/autograd.h"
#include "qkv/ops/common.h"

namespace qkv {
namespace {

constexpr int64_t kRowBlock = 64;

// cos and sin of every position used, [positions, D/2] each.
template <class T>
struct Turns {
  std::vector<T> cosine, sine;
  Turns(std::span<const int64_t> positions, int64_t D, double base) {
    const int64_t half = D / 2, last = positions.empty() ? -1 : *std::max_element(positions.begin(), positions.end());
    for (int64_t p = 0; p <= last; ++p) {
      for (int64_t j = 0; j < half; ++j) {
        const double angle =
            static_cast<double>(p) * std::pow(base, -2.0 * static_cast<double>(j) / static_cast<double>(D));
        cosine.push_back(static_cast<T>(std::cos(angle)));
        sine.push_back(static_cast<T>(std::sin(angle)));
      }
    }
  }
};

// Turns the pairs of x by sign·θ.
template <class T>
void turn(const Tensor& x, const std::vector<int64_t>& positions, const Turns<T>& turns, T sign, const Tensor& out) {
  const int64_t H = x.dim(1), D = x.dim(2), half = D / 2, row = x.strides()[0], head = x.strides()[1];
  const T* from = x.data<T>();
  T* to = out.data<T>();
  parallel_blocks(x.dim(0), kRowBlock, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t p = positions[static_cast<size_t>(t)];
      const T *c = turns.cosine.data() + p * half, *s = turns.sine.data() + p * half;
      for (int64_t h = 0; h < H; ++h) {
        const T* in = from + t * row + h * head;
        T* y = to + (t * H + h) * D;
        for (int64_t j = 0; j < half; ++j) {
          y[j] = in[j] * c[j] - sign * in[j + half] * s[j];
          y[j + half] = in[j + half] * c[j] + sign * in[j] * s[j];
        }
      }
    }
  });
}

// part (+)= column c… of into.
template <class T>
void put_columns(const Tensor& into, int64_t first, const Tensor& part, bool fresh) {
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
        const Tensor d_x = d.buffer(0, fresh);
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
  if (x_in.rank() != 3 || x_in.dim(2) % 2 != 0 || x_in.dim(0) != static_cast<int64_t>(positions.size())) {
    shape_error("rotary", "x=" + x_in.shape().str() + " with " + std::to_string(positions.size()) +
                              " positions; expected [T,H,D] with D even and T positions");
  }
  for (int64_t p : positions) {
    if (p < 0) shape_error("rotary", "negative position " + std::to_string(p));
  }
  const Tensor x = x_in.strides()[2] == 1 || x_in.dim(2) <= 1 ? x_in.detach() : x_in.clone();
  const Tensor out = Tensor::empty(x.shape(), x.dtype());
  const std::vector<int64_t> kept(positions.begin(), positions.end());
  const int64_t D = x.dim(2);
  dispatch(x.dtype(), [&](auto t) {
    using T = decltype(t);
    turn<T>(x, kept, Turns<T>(kept, D, base), T(1), out);
  });
  return record("rotary", out, {x_in}, [kept, D, base](const Tensor& d_out, Grads& d) {
    const Tensor g = dense(d_out), d_x = Tensor::empty(g.shape(), g.dtype());
    dispatch(g.dtype(), [&](auto t) {
      using T = decltype(t);
      turn<T>(g, kept, Turns<T>(kept, D, base), T(-1), d_x);
    });
    d.add(0, d_x);
  });
}

}  // namespace qkv
