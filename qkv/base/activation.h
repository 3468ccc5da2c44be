// The functions a linear layer may apply to its results.
#pragma once

#include <cstdint>

namespace qkv {

/// none x; relu max(0, x); gelu x·Φ(x) with the exact erf (PyTorch's default); tanh x; sigmoid 1/(1 + e^-x).
enum class Act : uint8_t { none, relu, gelu, tanh, sigmoid };

}  // namespace qkv
