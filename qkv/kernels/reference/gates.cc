// The specification of the LSTM and GRU steps: plain loops.
#include <cmath>

#include "qkv/kernels/gates.h"

namespace qkv::kernels::reference {
namespace {

template <class T>
T sigmoid(T x) {
  return 1 / (1 + std::exp(-x));
}

}  // namespace

template <class T>
void lstm_step(const LstmStep<T>& s) noexcept {
  for (int64_t r = 0; r < s.rows; ++r) {
    T* gates = s.gates.row(r);
    for (int64_t j = 0; j < s.H; ++j) {
      const T i = sigmoid(gates[j]), f = sigmoid(gates[s.H + j]);
      const T g = std::tanh(gates[2 * s.H + j]), o = sigmoid(gates[3 * s.H + j]);
      const T c = f * (s.c_prev.data ? s.c_prev.row(r)[j] : T(0)) + i * g;
      gates[j] = i;
      gates[s.H + j] = f;
      gates[2 * s.H + j] = g;
      gates[3 * s.H + j] = o;
      s.c.row(r)[j] = c;
      s.h.row(r)[j] = o * std::tanh(c);
    }
  }
}

template <class T>
void lstm_step_backward(const LstmStepBackward<T>& s) noexcept {
  for (int64_t r = 0; r < s.rows; ++r) {
    const T* gates = s.gates.row(r);
    T* d_gates = s.d_gates.row(r);
    for (int64_t j = 0; j < s.H; ++j) {
      const T i = gates[j], f = gates[s.H + j], g = gates[2 * s.H + j], o = gates[3 * s.H + j];
      const T tanh_c = std::tanh(s.c.row(r)[j]), d_h = s.d_h.row(r)[j];
      const T c_prev = s.c_prev.data ? s.c_prev.row(r)[j] : T(0);
      const T dc = (s.d_c.data ? s.d_c.row(r)[j] : T(0)) + d_h * o * (1 - tanh_c * tanh_c);
      d_gates[j] = dc * g * i * (1 - i);
      d_gates[s.H + j] = dc * c_prev * f * (1 - f);
      d_gates[2 * s.H + j] = dc * i * (1 - g * g);
      d_gates[3 * s.H + j] = d_h * tanh_c * o * (1 - o);
      if (s.d_c_prev.data) s.d_c_prev.row(r)[j] = dc * f;
    }
  }
}

template <class T>
void gru_step(const GruStep<T>& s) noexcept {
  for (int64_t row = 0; row < s.rows; ++row) {
    const T *x = s.x_gates.row(row), *h = s.h_gates.row(row);
    for (int64_t j = 0; j < s.H; ++j) {
      const T hn = h[2 * s.H + j];
      const T r = sigmoid(x[j] + h[j]), z = sigmoid(x[s.H + j] + h[s.H + j]), n = std::tanh(x[2 * s.H + j] + r * hn);
      const T h_prev = s.h_prev.data ? s.h_prev.row(row)[j] : T(0);
      if (s.saved.data) {
        T* saved = s.saved.row(row);
        saved[j] = r;
        saved[s.H + j] = z;
        saved[2 * s.H + j] = n;
        saved[3 * s.H + j] = hn;
      }
      s.h.row(row)[j] = (1 - z) * n + z * h_prev;
    }
  }
}

template <class T>
void gru_step_backward(const GruStepBackward<T>& s) noexcept {
  for (int64_t row = 0; row < s.rows; ++row) {
    const T* saved = s.saved.row(row);
    T *d_x = s.d_x_gates.row(row), *d_hg = s.d_h_gates.row(row);
    for (int64_t j = 0; j < s.H; ++j) {
      const T r = saved[j], z = saved[s.H + j], n = saved[2 * s.H + j], hn = saved[3 * s.H + j];
      const T h_prev = s.h_prev.data ? s.h_prev.row(row)[j] : T(0), d_h = s.d_h.row(row)[j];
      const T dn = d_h * (1 - z) * (1 - n * n);
      const T dz = d_h * (h_prev - n) * z * (1 - z);
      const T dr = dn * hn * r * (1 - r);
      d_x[j] = d_hg[j] = dr;
      d_x[s.H + j] = d_hg[s.H + j] = dz;
      d_x[2 * s.H + j] = dn;
      d_hg[2 * s.H + j] = dn * r;
      if (s.d_h_prev.data) s.d_h_prev.row(row)[j] = d_h * z;
    }
  }
}

#define QKV_INSTANTIATE(T)                                               \
  template void lstm_step(const LstmStep<T>&) noexcept;                  \
  template void lstm_step_backward(const LstmStepBackward<T>&) noexcept; \
  template void gru_step(const GruStep<T>&) noexcept;                    \
  template void gru_step_backward(const GruStepBackward<T>&) noexcept;
QKV_INSTANTIATE(float)
QKV_INSTANTIATE(double)
#undef QKV_INSTANTIATE

}  // namespace qkv::kernels::reference
