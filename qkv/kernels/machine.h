// The machine's limits, measured: how fast it multiplies and how fast it reads memory.
#pragma once

namespace qkv::kernels {

/// Fused multiply-adds of f32 on the instruction set in use, `threads` threads at once, best of several tries of
/// about 20 ms: operations a second (two per multiply-add).
double measure_fma_peak(int threads);

/// Reading an array far larger than the caches, `threads` threads at once, best of several tries: bytes a second.
double measure_read_bandwidth(int threads);

}  // namespace qkv::kernels
