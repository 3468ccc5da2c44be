// The SIMD pieces that gemm.cc puts together; one table of them per instruction set. Internal to kernels/.
#pragma once

#include <cstdint>

#include "qkv/kernels/gemm.h"

namespace qkv::kernels::detail {

/// One tile of C: c = A·B + start for MR rows and NV vectors of columns.
///   A, by rows: element (r, k) at a[r*a_stride + k];  by columns: at a[k*a_stride + r].
///   B: row k at b + k*b_stride. start has the tile's shape and its own row stride; 0 repeats one row.
///   Without start, c = A·B.
struct GemmTile {
  int64_t K = 0;
  const float* a = nullptr;
  int64_t a_stride = 0;
  const float* b = nullptr;
  int64_t b_stride = 0;
  float* c = nullptr;
  int64_t c_stride = 0;
  const float* start = nullptr;
  int64_t start_stride = 0;
  // What to bring into the cache meanwhile: in the n-th sixty-four steps of k, sixty-four floats from each of fetch +
  // n*fetch_next + u*fetch_step, u < fetch_count; fetch_together of them at a time.
  const float* fetch = nullptr;
  int64_t fetch_step = 0, fetch_next = 0, fetch_count = 0, fetch_together = 0;
  float* packed = nullptr;  // packing_tile: where B goes, row by row, a tile's width each
};
constexpr int kFetchSteps = 64, kFetchFloats = 64, kLineFloats = 16;
constexpr int kUnrolled = 4;  // steps of k between two fetches

/// A few rows of C at once, without packing: c[i, j] += Σ_k a[i*a_stride + k] · op(B)[k, j], i < M, j < N.
struct GemmFewRows {
  int64_t M = 0, N = 0, K = 0;
  const float* a = nullptr;
  int64_t a_stride = 0;
  const float* b = nullptr;
  int64_t b_stride = 0;
  float* c = nullptr;
  int64_t c_stride = 0;
};

/// A rectangle of results to finish in place: pre = c (if given), c = act(c).
struct GemmFinish {
  Activation activation = Activation::none;
  int64_t rows = 0, cols = 0;
  float* c = nullptr;
  float* pre = nullptr;
  int64_t stride = 0;
};

constexpr int kTileRows = 6;        // of a full tile
constexpr int kMaxTileVectors = 4;  // of its columns

struct GemmKernels {
  int lanes = 1;    // floats in a vector
  int vectors = 1;  // a full tile is so many vectors wide
  /// tile[by_columns][vectors - 1][rows - 1]
  void (*tile[2][kMaxTileVectors][kTileRows])(const GemmTile&) = {};
  /// packing_tile[by_columns][rows - 1]: a full tile wide, and leaves a packed copy of B.
  void (*packing_tile[2][kTileRows])(const GemmTile&) = {};
  /// B stored [K,N]; M ≤ 4.
  void (*few_rows)(const GemmFewRows&) = nullptr;
  /// B stored [N,K]; any M (best for few).
  void (*few_rows_transposed)(const GemmFewRows&) = nullptr;
  /// dst[k*width + j] = src[k*stride + j] for k < K, j < cols; zero for cols ≤ j < width.
  void (*pack)(const float* src, int64_t stride, float* dst, int64_t K, int64_t cols) = nullptr;
  /// dst[k*width + j] = src[j*stride + k]; zero for cols ≤ j < width.
  void (*pack_transposed)(const float* src, int64_t stride, float* dst, int64_t K, int64_t cols) = nullptr;
  /// One tile of A as [k][row]: dst[k*rows + r] = src[k*stride + r]. dst has a vector to spare.
  void (*pack_tile_columns)(const float* src, int64_t stride, float* dst, int64_t K, int64_t rows) = nullptr;
  void (*finish)(const GemmFinish&) = nullptr;
};

/// The table for the instruction set in use.
const GemmKernels& gemm_kernels();

}  // namespace qkv::kernels::detail
