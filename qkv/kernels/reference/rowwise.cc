// The specification of the row kernels: plain loops with sums in double.
#include <algorithm>
#include <cmath>
#include <limits>

#include "qkv/kernels/rowwise.h"

namespace qkv::kernels::reference {
namespace {

template <class T>
double log_sum_exp(const T* x, int64_t n) {
  double peak = -std::numeric_limits<double>::infinity();
  for (int64_t j = 0; j < n; ++j) peak = std::max(peak, static_cast<double>(x[j]));
  if (!std::isfinite(peak)) return peak;
  double sum = 0;
  for (int64_t j = 0; j < n; ++j) sum += std::exp(static_cast<double>(x[j]) - peak);
  return peak + std::log(sum);
}

template <class T>
int64_t row_length(const SoftmaxRows<T>& s, int64_t r) {
  return s.lens ? std::clamp<int64_t>(s.lens[r], 0, s.cols) : s.cols;
}

}  // namespace

template <class T>
void log_softmax_rows(const SoftmaxRows<T>& s) noexcept {
  for (int64_t r = 0; r < s.rows; ++r) {
    const T* x = s.x + r * s.cols;
    T* y = s.y + r * s.cols;
    const int64_t n = row_length(s, r);
    const double lse = log_sum_exp(x, n);
    for (int64_t j = 0; j < n; ++j) y[j] = static_cast<T>(static_cast<double>(x[j]) - lse);
    std::fill(y + n, y + s.cols, -std::numeric_limits<T>::infinity());
  }
}

template <class T>
void softmax_rows(const SoftmaxRows<T>& s) noexcept {
  for (int64_t r = 0; r < s.rows; ++r) {
    const T* x = s.x + r * s.cols;
    T* y = s.y + r * s.cols;
    const int64_t n = row_length(s, r);
    const double lse = log_sum_exp(x, n);
    for (int64_t j = 0; j < n; ++j) y[j] = static_cast<T>(std::exp(static_cast<double>(x[j]) - lse));
    std::fill(y + n, y + s.cols, T(0));
  }
}

template <class T>
void softmax_rows_backward(const SoftmaxRowsBackward<T>& s) noexcept {
  for (int64_t at = 0; at < s.rows * s.cols; at += s.cols) {
    double dot = 0;
    for (int64_t j = 0; j < s.cols; ++j) dot += static_cast<double>(s.y[at + j]) * static_cast<double>(s.d_y[at + j]);
    for (int64_t j = 0; j < s.cols; ++j)
      s.d_x[at + j] = static_cast<T>(static_cast<double>(s.y[at + j]) * (static_cast<double>(s.d_y[at + j]) - dot));
  }
}

template <class T>
void log_softmax_rows_backward(const SoftmaxRowsBackward<T>& s) noexcept {
  for (int64_t at = 0; at < s.rows * s.cols; at += s.cols) {
    double total = 0;
    for (int64_t j = 0; j < s.cols; ++j)
      if (s.y[at + j] > -std::numeric_limits<T>::infinity()) total += static_cast<double>(s.d_y[at + j]);
    for (int64_t j = 0; j < s.cols; ++j) {
      const double y = static_cast<double>(s.y[at + j]);
      s.d_x[at + j] = std::isinf(y) ? T(0) : static_cast<T>(static_cast<double>(s.d_y[at + j]) - std::exp(y) * total);
    }
  }
}

template <class T>
void layer_norm(const LayerNorm<T>& l) noexcept {
  const double n = static_cast<double>(l.cols);
  for (int64_t r = 0; r < l.rows; ++r) {
    const int64_t at = r * l.cols;
    const T* s = l.x + at;
    if (l.residual) {
      for (int64_t j = 0; j < l.cols; ++j) l.sum[at + j] = l.x[at + j] + l.residual[at + j];
      s = l.sum + at;
    }
    double mean = 0, variance = 0;
    for (int64_t j = 0; j < l.cols; ++j) mean += static_cast<double>(s[j]) / n;
    for (int64_t j = 0; j < l.cols; ++j)
      variance += (static_cast<double>(s[j]) - mean) * (static_cast<double>(s[j]) - mean) / n;
    const double rstd = 1 / std::sqrt(variance + static_cast<double>(l.eps));
    for (int64_t j = 0; j < l.cols; ++j) {
      const double gamma = l.gamma ? static_cast<double>(l.gamma[j]) : 1.0;
      const double beta = l.beta ? static_cast<double>(l.beta[j]) : 0.0;
      l.y[at + j] = static_cast<T>((static_cast<double>(s[j]) - mean) * rstd * gamma + beta);
    }
    if (l.mean) l.mean[r] = static_cast<T>(mean);
    if (l.rstd) l.rstd[r] = static_cast<T>(rstd);
  }
}

template <class T>
void layer_norm_backward(const LayerNormBackward<T>& l) noexcept {
  const double n = static_cast<double>(l.cols);
  // Parameter gradients first: d_s may overwrite d_y.
  for (int64_t j = 0; j < l.cols; ++j) {
    double gamma = 0, beta = 0;
    for (int64_t r = 0; r < l.rows; ++r) {
      const double d = static_cast<double>(l.d_y[r * l.cols + j]);
      gamma += d * (static_cast<double>(l.s[r * l.cols + j]) - static_cast<double>(l.mean[r])) *
               static_cast<double>(l.rstd[r]);
      beta += d;
    }
    if (l.d_gamma) l.d_gamma[j] = static_cast<T>(static_cast<double>(l.d_gamma[j]) + gamma);
    if (l.d_beta) l.d_beta[j] = static_cast<T>(static_cast<double>(l.d_beta[j]) + beta);
  }
  if (!l.d_s) return;
  for (int64_t r = 0; r < l.rows; ++r) {
    const int64_t at = r * l.cols;
    const double mean = static_cast<double>(l.mean[r]), rstd = static_cast<double>(l.rstd[r]);
    const auto g = [&](int64_t j) {
      return static_cast<double>(l.d_y[at + j]) * (l.gamma ? static_cast<double>(l.gamma[j]) : 1.0);
    };
    const auto x_hat = [&](int64_t j) { return (static_cast<double>(l.s[at + j]) - mean) * rstd; };
    double mean_g = 0, mean_gx = 0;
    for (int64_t j = 0; j < l.cols; ++j) {
      mean_g += g(j) / n;
      mean_gx += g(j) * x_hat(j) / n;
    }
    for (int64_t j = 0; j < l.cols; ++j) {
      const double skip = l.d_sum ? static_cast<double>(l.d_sum[at + j]) : 0.0;
      l.d_s[at + j] = static_cast<T>(rstd * (g(j) - mean_g - x_hat(j) * mean_gx) + skip);
    }
  }
}

template <class T>
void cross_entropy_backward(const CrossEntropy<T>& c) noexcept {
  const double smooth = static_cast<double>(c.smoothing), spread = smooth / static_cast<double>(c.V);
  for (int64_t r = 0; r < c.rows; ++r) {
    const T* z = c.logits + r * c.V;
    T* d = c.d_logits + r * c.V;
    const int64_t t = c.targets[r];
    if (t == c.ignore_index || t < 0 || t >= c.V) {
      std::fill(d, d + c.V, T(0));
      continue;
    }
    const double w = static_cast<double>(c.d_loss ? c.d_loss[r] : c.d_scale), lse = static_cast<double>(c.lse[r]);
    for (int64_t j = 0; j < c.V; ++j)
      d[j] = static_cast<T>(w * (std::exp(static_cast<double>(z[j]) - lse) - spread - (j == t ? 1 - smooth : 0.0)));
  }
}

template <class T>
void cross_entropy(const CrossEntropy<T>& c) noexcept {
  const double smooth = static_cast<double>(c.smoothing);
  for (int64_t r = 0; r < c.rows; ++r) {
    const T* z = c.logits + r * c.V;
    const int64_t t = c.targets[r];
    const double lse = log_sum_exp(z, c.V);
    T lse_rounded = static_cast<T>(lse);
    if (c.lse) c.lse[r] = lse_rounded;
    if (c.loss) {
      double total = 0;
      for (int64_t j = 0; j < c.V; ++j) total += static_cast<double>(z[j]);
      const bool counts = t != c.ignore_index && t >= 0 && t < c.V;
      c.loss[r] = counts ? static_cast<T>(lse - (1 - smooth) * static_cast<double>(z[t]) -
                                          (smooth > 0 ? smooth * total / static_cast<double>(c.V) : 0.0))
                         : T(0);
    }
    if (!c.d_logits) continue;
    CrossEntropy<T> row = c;
    row.rows = 1;
    row.logits = z;
    row.targets = c.targets + r;
    row.lse = &lse_rounded;
    row.d_logits = c.d_logits + r * c.V;
    if (c.d_loss) row.d_loss = c.d_loss + r;
    cross_entropy_backward(row);
  }
}

template <class T>
void sum_rows(const SumRows<T>& s) noexcept {
  for (int64_t j = 0; j < s.cols; ++j) {
    double total = s.accumulate ? static_cast<double>(s.out[j]) : 0.0;
    for (int64_t r = 0; r < s.rows; ++r) total += static_cast<double>(s.x[r * s.cols + j]);
    s.out[j] = static_cast<T>(total);
  }
}

#define QKV_INSTANTIATE(T)                                                         \
  template void log_softmax_rows(const SoftmaxRows<T>&) noexcept;                  \
  template void softmax_rows(const SoftmaxRows<T>&) noexcept;                      \
  template void softmax_rows_backward(const SoftmaxRowsBackward<T>&) noexcept;     \
  template void log_softmax_rows_backward(const SoftmaxRowsBackward<T>&) noexcept; \
  template void layer_norm(const LayerNorm<T>&) noexcept;                          \
  template void layer_norm_backward(const LayerNormBackward<T>&) noexcept;         \
  template void cross_entropy(const CrossEntropy<T>&) noexcept;                    \
  template void cross_entropy_backward(const CrossEntropy<T>&) noexcept;           \
  template void sum_rows(const SumRows<T>&) noexcept;
QKV_INSTANTIATE(float)
QKV_INSTANTIATE(double)
#undef QKV_INSTANTIATE

}  // namespace qkv::kernels::reference
