// Optimizer updates.
#include "qkv/kernels/optimizer_step.h"

namespace qkv::kernels {
void adamw_step(const AdamWRule& rule, const ParameterSlice<float>& slice) noexcept {
  reference::adamw_step(rule, slice);
}
void sgd_step(const SgdRule& rule, const ParameterSlice<float>& slice) noexcept { reference::sgd_step(rule, slice); }
}  // namespace qkv::kernels
