// The SIMD pieces that gemm.cc puts together; one table of them per instruction set. Internal to kernels/.
#pragma once

#include <cstdint>

#include "qkv/kernels/gemm/gemm.h"

namespace qkv::kernels::detail {

/// A row or a column of tiles: `count` times c = A·B + start for MR rows and NV vectors of columns.
///   A, by rows: element (r, k) at a[r*a_stride + k];  by columns: at a[k*a_stride + r].
///   B: row k at b + k*b_stride. start has C's shape and its own row stride; 0 repeats one row.
///   Without start, c = A·B.
struct GemmTiles {
  int64_t count = 1;
  int64_t a_next = 0, b_next = 0, c_next = 0, start_next = 0;  // from a tile to the next one
  int64_t K = 0;
  const float* a = nullptr;
  int64_t a_stride = 0;
  const float* b = nullptr;
  int64_t b_stride = 0;
  float* c = nullptr;
  int64_t c_stride = 0;
  const float* start = nullptr;
  int64_t start_stride = 0;
  int64_t edge = 0;  // columns of the last vector; 0: all of it
  // What to prefetch: in the n-th fetch_steps of k, a tile's width from each of from + n*next +
  // u*step, u < units; from + ahead is where the next tile begins, and only the first `tiles` fetch.
  struct Fetch {
    const float* from = nullptr;
    int64_t units = 0, step = 0, next = 0, tiles = 0, ahead = 0;
  } fetch = {};
  float* packed = nullptr;  // packing_tiles: where B goes, row by row, a tile's width each
};

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
  Act activation = Act::none;
  int64_t rows = 0, cols = 0;
  float* c = nullptr;
  float* pre = nullptr;
  int64_t stride = 0;
};

// A full tile has six rows and up to four vectors of columns; up to fourteen rows go with two vectors.
constexpr int kTileRows = 6, kMaxTileVectors = 4;
constexpr int kHighTileRows = 14, kHighTileVectors = 2;

struct GemmKernels {
  int lanes = 1;           // floats in a vector
  int vectors = 1;         // a full tile is this many vectors wide, and a packed panel of B
  int fetch_steps = 1;     // see GemmTiles::Fetch
  int fetch_together = 1;  // units are fetched this many at a time
  /// tiles[by_columns][vectors - 1][rows - 1]
  void (*tiles[2][kMaxTileVectors][kTileRows])(const GemmTiles&) = {};
  /// packing_tiles[by_columns][rows - 1]: a full tile wide, and leaves a packed copy of B.
  void (*packing_tiles[2][kTileRows])(const GemmTiles&) = {};
  /// high_tiles[vectors - 1][rows - 1]: A by rows; B is fetched a few rows ahead. Only where there are registers for
  /// them: `vectors` is more than theirs.
  void (*high_tiles[kHighTileVectors][kHighTileRows])(const GemmTiles&) = {};
  /// B stored [K,N]; M ≤ 4.
  void (*few_rows)(const GemmFewRows&) = nullptr;
  /// B stored [N,K]; any M (best for few).
  void (*few_rows_transposed)(const GemmFewRows&) = nullptr;
  /// dst[k*width + j] = src[k*stride + j] for k < K, j < cols; zero from there to the end of the vector.
  void (*pack)(const float* src, int64_t stride, float* dst, int64_t K, int64_t cols) = nullptr;
  /// dst[k*width + j] = src[j*stride + k]; zero for cols ≤ j < width.
  void (*pack_transposed)(const float* src, int64_t stride, float* dst, int64_t K, int64_t cols) = nullptr;
  void (*finish)(const GemmFinish&) = nullptr;
};

/// The table for the instruction set in use.
const GemmKernels& gemm_kernels();

}  // namespace qkv::kernels::detail
