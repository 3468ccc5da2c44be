// Matrix products.
#include "qkv/kernels/gemm.h"

namespace qkv::kernels {
void gemm(const GemmArgs& args) noexcept { reference::gemm(args); }
void gemm_batched(const GemmArgs& args, const GemmBatch& batch) noexcept { reference::gemm_batched(args, batch); }
}  // namespace qkv::kernels
