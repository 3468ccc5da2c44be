// The f32 attention kernels behind the public entry points, chosen by rule in attention.cc.
#pragma once

#include "qkv/kernels/attention/attention.h"

namespace qkv::kernels {

/// Dot scores and softmax: tiles with a running maximum.
void flash_forward(const AttentionInputs<float>& in, const AttentionOutputs<float>& out);
/// Its backward, from lse: one pass over the tiles.
void flash_backward(const AttentionInputs<float>& in, const AttentionGrads<float>& grads);
/// Any score and normaliser: whole rows of a few queries at a time.
void whole_rows_forward(const AttentionInputs<float>& in, const AttentionOutputs<float>& out);
void whole_rows_backward(const AttentionInputs<float>& in, const AttentionGrads<float>& grads);

}  // namespace qkv::kernels
