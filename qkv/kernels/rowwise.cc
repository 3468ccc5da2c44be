// Row kernels.
#include "qkv/kernels/rowwise.h"

namespace qkv::kernels {
void log_softmax_rows(const SoftmaxRows<float>& args) noexcept { reference::log_softmax_rows(args); }
void softmax_rows(const SoftmaxRows<float>& args) noexcept { reference::softmax_rows(args); }
void softmax_rows_backward(const SoftmaxRowsBackward<float>& args) noexcept { reference::softmax_rows_backward(args); }
void log_softmax_rows_backward(const SoftmaxRowsBackward<float>& args) noexcept {
  reference::log_softmax_rows_backward(args);
}
void layer_norm(const LayerNorm<float>& args) noexcept { reference::layer_norm(args); }
void layer_norm_backward(const LayerNormBackward<float>& args) noexcept { reference::layer_norm_backward(args); }
void cross_entropy(const CrossEntropy<float>& args) noexcept { reference::cross_entropy(args); }
void cross_entropy_backward(const CrossEntropy<float>& args) noexcept { reference::cross_entropy_backward(args); }
void sum_rows(const SumRows<float>& args) noexcept { reference::sum_rows(args); }
}  // namespace qkv::kernels
