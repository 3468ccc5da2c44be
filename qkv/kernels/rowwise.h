// Kernels that work on the rows of a matrix: softmax, layer norm, cross entropy. Rows are contiguous.
#pragma once

#include <cstdint>

namespace qkv::kernels {

/// y[r,:] = softmax(x[r, 0…lens[r]-1]), zero at and past lens[r]; a row of length ≤ 0 is all zero.
/// lens [rows] or null (every column counts); values past the length are never read. x and y may be the same.
template <class T>
struct SoftmaxRows {
  int64_t rows = 0, cols = 0;
  const T* x = nullptr;           // [rows, cols]
  T* y = nullptr;                 // [rows, cols]
  const int64_t* lens = nullptr;  // [rows]
};

/// d_x = y ⊙ (d_y - Σ_j d_y y) for softmax, d_x = d_y - e^y Σ_j d_y for log-softmax; y is forward's result.
/// d_x may be d_y. Columns hidden by lens have y = 0, hence d_x = 0.
template <class T>
struct SoftmaxRowsBackward {
  int64_t rows = 0, cols = 0;
  const T* y = nullptr;    // [rows, cols]
  const T* d_y = nullptr;  // [rows, cols]
  T* d_x = nullptr;        // [rows, cols]
};

/// s = x (+ residual);  y = (s - mean s) · rstd · gamma + beta,  rstd = 1/√(var s + eps), var the biased one.
/// With a residual, `sum` receives s (it may be x or residual itself); backward needs it.
/// gamma and beta may be null (1 and 0); mean and rstd [rows] may be null. y may be x when there is no residual.
template <class T>
struct LayerNorm {
  int64_t rows = 0, cols = 0;
  T eps = T(1e-5);
  const T* x = nullptr;         // [rows, cols]
  const T* residual = nullptr;  // [rows, cols] or null
  T* sum = nullptr;             // [rows, cols], required with residual
  const T* gamma = nullptr;     // [cols]
  const T* beta = nullptr;      // [cols]
  T* y = nullptr;               // [rows, cols]
  T* mean = nullptr;            // [rows]
  T* rstd = nullptr;            // [rows]
};

/// With x̂ = (s - mean)·rstd and g = d_y ⊙ gamma:  d_s = rstd·(g - mean(g) - x̂·mean(g ⊙ x̂)) (+ d_sum).
/// d_s is the gradient of x and of residual alike. d_gamma += Σ_r d_y ⊙ x̂, d_beta += Σ_r d_y, in a fixed order;
/// d_s, d_gamma, d_beta may be null. d_sum, when given, is the gradient that reached s by other ways (a pre-norm
/// block's skip); d_s may be d_y or d_sum.
template <class T>
struct LayerNormBackward {
  int64_t rows = 0, cols = 0;
  const T* s = nullptr;      // [rows, cols], what was normalised
  const T* gamma = nullptr;  // [cols] or null
  const T* mean = nullptr;   // [rows]
  const T* rstd = nullptr;   // [rows]
  const T* d_y = nullptr;    // [rows, cols]
  const T* d_sum = nullptr;  // [rows, cols] or null
  T* d_s = nullptr;          // [rows, cols]
  T* d_gamma = nullptr;      // [cols]
  T* d_beta = nullptr;       // [cols]
};

/// loss[r] = lse_r - (1-ε)·z[r,t] - ε/V·Σ_j z[r,j],  lse_r = log Σ_j e^{z[r,j]}, t = targets[r], ε = smoothing.
/// d_logits[r,j] = w_r · (e^{z[r,j] - lse_r} - (1-ε)·[j = t] - ε/V),  w_r = d_loss ? d_loss[r] : d_scale.
/// A row whose target is ignore_index, or is not in [0, V), has loss 0 and a zero gradient (lse is still given).
/// loss, lse and d_logits may each be null; d_logits may be logits.
template <class T>
struct CrossEntropy {
  int64_t rows = 0, V = 0;
  const T* logits = nullptr;         // [rows, V]
  const int64_t* targets = nullptr;  // [rows]
  int64_t ignore_index = -100;
  T smoothing = 0;
  T* loss = nullptr;          // [rows]
  T* lse = nullptr;           // [rows]
  T* d_logits = nullptr;      // [rows, V]
  const T* d_loss = nullptr;  // [rows] or null
  T d_scale = 1;
};

/// x [rows, cols]: out[j] = Σ_r x[r,j], or += with accumulate; rows are summed in a fixed order.
template <class T>
struct SumRows {
  int64_t rows = 0, cols = 0;
  const T* x = nullptr;
  T* out = nullptr;  // [cols]
  bool accumulate = false;
};

/// Like softmax_rows: y = x - log Σ e^x over the first lens[r] columns, -inf at and past lens[r].
void log_softmax_rows(const SoftmaxRows<float>& args);
void softmax_rows(const SoftmaxRows<float>& args);
void softmax_rows_backward(const SoftmaxRowsBackward<float>& args);
void log_softmax_rows_backward(const SoftmaxRowsBackward<float>& args);
void layer_norm(const LayerNorm<float>& args);
void layer_norm_backward(const LayerNormBackward<float>& args);
void cross_entropy(const CrossEntropy<float>& args);
/// d_logits alone, from logits and forward's lse (read, not written).
void cross_entropy_backward(const CrossEntropy<float>& args);
void sum_rows(const SumRows<float>& args);

// The specification: plain loops with sums in double, for float and double.
namespace reference {
template <class T>
void log_softmax_rows(const SoftmaxRows<T>& args) noexcept;
template <class T>
void softmax_rows(const SoftmaxRows<T>& args) noexcept;
template <class T>
void softmax_rows_backward(const SoftmaxRowsBackward<T>& args) noexcept;
template <class T>
void log_softmax_rows_backward(const SoftmaxRowsBackward<T>& args) noexcept;
template <class T>
void layer_norm(const LayerNorm<T>& args) noexcept;
template <class T>
void layer_norm_backward(const LayerNormBackward<T>& args) noexcept;
template <class T>
void cross_entropy(const CrossEntropy<T>& args) noexcept;
template <class T>
void cross_entropy_backward(const CrossEntropy<T>& args) noexcept;
template <class T>
void sum_rows(const SumRows<T>& args) noexcept;
}  // namespace reference

// f64 takes the specification itself.
inline void log_softmax_rows(const SoftmaxRows<double>& args) { reference::log_softmax_rows(args); }
inline void softmax_rows(const SoftmaxRows<double>& args) { reference::softmax_rows(args); }
inline void softmax_rows_backward(const SoftmaxRowsBackward<double>& args) { reference::softmax_rows_backward(args); }
inline void log_softmax_rows_backward(const SoftmaxRowsBackward<double>& args) {
  reference::log_softmax_rows_backward(args);
}
inline void layer_norm(const LayerNorm<double>& args) { reference::layer_norm(args); }
inline void layer_norm_backward(const LayerNormBackward<double>& args) { reference::layer_norm_backward(args); }
inline void cross_entropy(const CrossEntropy<double>& args) { reference::cross_entropy(args); }
inline void cross_entropy_backward(const CrossEntropy<double>& args) { reference::cross_entropy_backward(args); }
inline void sum_rows(const SumRows<double>& args) { reference::sum_rows(args); }

}  // namespace qkv::kernels
