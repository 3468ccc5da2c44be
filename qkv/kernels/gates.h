// The pointwise half of one LSTM or GRU step over a batch of rows; the products are gemm's.
#pragma once

#include <cstdint>

namespace qkv::kernels {

/// Row r starts at data + r*stride. Rows of different arguments may live in larger matrices.
template <class T>
struct RowMajor {
  T* data = nullptr;
  int64_t stride = 0;
  T* row(int64_t r) const { return data + r * stride; }
};

/// One LSTM step. gates = W_ih x + b_ih + W_hh h + b_hh holds [i | f | g | o], each [H], and is replaced by
/// the activations σ(i), σ(f), tanh(g), σ(o), which backward needs.
///   c = f ⊙ c_prev + i ⊙ g;  h = o ⊙ tanh(c)
/// c_prev with null data is zero. c may be c_prev.
template <class T>
struct LstmStep {
  int64_t rows = 0, H = 0;
  RowMajor<T> gates;         // [rows, 4H]
  RowMajor<const T> c_prev;  // [rows, H]
  RowMajor<T> c, h;          // [rows, H]
};

/// Gradients of one LSTM step, given d_h and the d_c that came from the step after (null data: zero).
///   do = d_h tanh(c);  dc = d_c + d_h o (1 - tanh²c);  di = dc g;  df = dc c_prev;  dg = dc i;  d_c_prev = dc f
/// d_gates receives the gradients before the activations and may be gates; d_c_prev may be d_c, or null.
template <class T>
struct LstmStepBackward {
  int64_t rows = 0, H = 0;
  RowMajor<const T> gates;      // [rows, 4H], forward's activations
  RowMajor<const T> c_prev, c;  // [rows, H]
  RowMajor<const T> d_h, d_c;   // [rows, H]
  RowMajor<T> d_gates;          // [rows, 4H]
  RowMajor<T> d_c_prev;         // [rows, H]
};

/// One GRU step (PyTorch's): x_gates = W_ih x + b_ih and h_gates = W_hh h + b_hh hold [r | z | n], each [H].
///   r = σ(xr + hr);  z = σ(xz + hz);  n = tanh(xn + r ⊙ hn);  h = (1 - z) ⊙ n + z ⊙ h_prev
/// saved receives [r | z | n | hn] for backward and may be null. h_prev with null data is zero; h may be h_prev.
template <class T>
struct GruStep {
  int64_t rows = 0, H = 0;
  RowMajor<const T> x_gates, h_gates;  // [rows, 3H]
  RowMajor<const T> h_prev;            // [rows, H]
  RowMajor<T> saved;                   // [rows, 4H]
  RowMajor<T> h;                       // [rows, H]
};

/// Gradients of one GRU step.
///   dn = d_h (1-z)(1-n²);  dz = d_h (h_prev - n) z(1-z);  dr = dn hn r(1-r)
///   d_x_gates = [dr | dz | dn];  d_h_gates = [dr | dz | dn ⊙ r];  d_h_prev = d_h ⊙ z (the direct way only)
/// d_h_prev may be d_h, or null.
template <class T>
struct GruStepBackward {
  int64_t rows = 0, H = 0;
  RowMajor<const T> saved;   // [rows, 4H]
  RowMajor<const T> h_prev;  // [rows, H]
  RowMajor<const T> d_h;     // [rows, H]
  RowMajor<T> d_x_gates;     // [rows, 3H]
  RowMajor<T> d_h_gates;     // [rows, 3H]
  RowMajor<T> d_h_prev;      // [rows, H]
};

void lstm_step(const LstmStep<float>& args);
void lstm_step_backward(const LstmStepBackward<float>& args);
void gru_step(const GruStep<float>& args);
void gru_step_backward(const GruStepBackward<float>& args);

// The specification: plain loops, for float and double.
namespace reference {
template <class T>
void lstm_step(const LstmStep<T>& args) noexcept;
template <class T>
void lstm_step_backward(const LstmStepBackward<T>& args) noexcept;
template <class T>
void gru_step(const GruStep<T>& args) noexcept;
template <class T>
void gru_step_backward(const GruStepBackward<T>& args) noexcept;
}  // namespace reference

// f64 takes the specification itself.
inline void lstm_step(const LstmStep<double>& args) { reference::lstm_step(args); }
inline void lstm_step_backward(const LstmStepBackward<double>& args) { reference::lstm_step_backward(args); }
inline void gru_step(const GruStep<double>& args) { reference::gru_step(args); }
inline void gru_step_backward(const GruStepBackward<double>& args) { reference::gru_step_backward(args); }

}  // namespace qkv::kernels
