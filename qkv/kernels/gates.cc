// LSTM and GRU steps.
#include "qkv/kernels/gates.h"

namespace qkv::kernels {
void lstm_step(const LstmStep<float>& args) noexcept { reference::lstm_step(args); }
void lstm_step_backward(const LstmStepBackward<float>& args) noexcept { reference::lstm_step_backward(args); }
void gru_step(const GruStep<float>& args) noexcept { reference::gru_step(args); }
void gru_step_backward(const GruStepBackward<float>& args) noexcept { reference::gru_step_backward(args); }
}  // namespace qkv::kernels
