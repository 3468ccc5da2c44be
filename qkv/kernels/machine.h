// The machine's limits, measured: how fast it multiplies and how fast it reads memory.
#pragma once

#include <cstdint>

namespace qkv::kernels {

/// Fused multiply-adds of f32 on the instruction set in use, `threads` threads at once, best of several tries of
/// about 20 ms: operations per second (two per multiply-add).
double measure_fma_peak(int threads);

/// Far larger than the caches.
constexpr int64_t kBeyondCaches = int64_t{256} << 20;

/// Reading `bytes` of memory again and again, each of `threads` threads its own part, best of `tries`: bytes per
/// second.
double measure_read_bandwidth(int threads, int64_t bytes = kBeyondCaches, int tries = 5);

}  // namespace qkv::kernels
