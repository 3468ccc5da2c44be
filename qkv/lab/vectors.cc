// Small helpers the experiments share.
#include "qkv/lab/vectors.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "qkv/base/error.h"
#include "qkv/ops/ops.h"

namespace qkv::lab {

void check_orthogonal(int64_t count, int64_t dim, const std::string& what) {
  if (count <= dim) return;
  throw ConfigError("--dim " + std::to_string(dim) + " is too small: " + std::to_string(count) + " " + what +
                    " need at least " + std::to_string(count) + " dimensions; raise --dim or use fewer");
}

Tensor gaussian(int64_t n, int64_t d, Rng& rng) { return Tensor::randn({n, d}, rng, 1.0, DType::f64); }

Tensor orthonormal(int64_t n, int64_t d, Rng& rng) {
  check_orthogonal(n, d, "orthogonal vectors");
  Tensor rows = gaussian(n, d, rng);  // [n, d]
  double* const all = rows.f64();
  for (int64_t i = 0; i < n; ++i) {
    double* const x = all + i * d;
    // Twice is enough: the second pass removes what rounding left of the first (Kahan and Parlett).
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t j = 0; j < i; ++j) {
        const double* const y = all + j * d;
        double along = 0;
        for (int64_t c = 0; c < d; ++c) along += x[c] * y[c];
        for (int64_t c = 0; c < d; ++c) x[c] -= along * y[c];
      }
      double squares = 0;
      for (int64_t c = 0; c < d; ++c) squares += x[c] * x[c];
      for (int64_t c = 0; c < d; ++c) x[c] /= std::sqrt(squares);
    }
  }
  return rows;
}

Tensor row(const Tensor& x, int64_t i) { return slice(x, 0, i, i + 1); }

Tensor reordered(const Tensor& x, std::span<const int64_t> order) { return gather_rows(x, order); }

Tensor batch_of_one(const Tensor& x) { return reshape(x.to(DType::f32), {1, x.dim(0), x.dim(1)}); }

Tensor unbatched(const Tensor& x) { return reshape(x.to(DType::f64), {x.dim(-2), x.dim(-1)}); }

double dot(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_doubles(), y = b.to_doubles();
  double total = 0;
  for (size_t i = 0; i < x.size(); ++i) total += x[i] * y[i];
  return total;
}

double norm(const Tensor& x) { return std::sqrt(dot(x, x)); }

double largest(const Tensor& x) {
  double top = 0;
  for (const double value : x.to_doubles()) {
    if (!(std::abs(value) <= top)) top = std::abs(value);  // a NaN must not hide
  }
  return top;
}

double distance(const Tensor& a, const Tensor& b) { return norm(a.to(DType::f64) - b.to(DType::f64)); }

double largest_difference(const Tensor& a, const Tensor& b) { return largest(a.to(DType::f64) - b.to(DType::f64)); }

ScoreRule with_scale(double beta) {
  ScoreRule rule;
  rule.scale = beta;
  return rule;
}

std::vector<double> plain_softmax(std::vector<double> z) {
  const double top = *std::max_element(z.begin(), z.end());
  double total = 0;
  for (double& x : z) total += x = std::exp(x - top);
  for (double& x : z) x /= total;
  return z;
}

double plain_entropy(std::span<const double> p) {
  double h = 0;
  for (const double x : p) h -= x > 0 ? x * std::log(x) : 0;
  return h;
}

std::string at(const char* name, double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%s = %.6g", name, value);
  return text;
}

}  // namespace qkv::lab
