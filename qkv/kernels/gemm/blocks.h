// Blocks of a product: what one thread does between two meetings with the others. Internal to kernels/.
#pragma once

#include <algorithm>
#include <cstdint>

#include "qkv/kernels/gemm/gemm.h"
#include "qkv/kernels/gemm/simd_table.h"
#include "qkv/kernels/scratch.h"

namespace qkv::kernels::detail {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

/// A thread's buffers for packed operands; `shared` belongs to the thread that called gemm.
struct GemmScratch {
  GrowingBuffer a[2], b, shared;
};
GemmScratch& gemm_scratch();

/// One call's sizes. Rows are cut into `tiles` equal tiles: 6 + 6 + 2 rows take longer than 5 + 5 + 4.
struct GemmSizes {
  const GemmArgs& g;
  const GemmKernels& kernels;
  int64_t width;    // columns of a tile: a panel's, or those of a high tile
  int64_t panel;    // columns of a packed panel
  int64_t block_k;  // depth of a panel: one of the equal parts K is cut into
  int64_t tiles, tile_rows, longer_tiles;
  bool pack_a, pack_b;
  bool far_b;        // B is read in place, and too large to be near
  bool panel_stays;  // a panel of B stays in L1 while tiles of A pass by; otherwise a tile of A while panels do

  int64_t tile_row(int64_t tile) const { return tile * tile_rows + std::min(tile, longer_tiles); }
  /// Columns of B, block_k deep, that stay in L2.
  int64_t l2_columns() const;
};

/// k0 <= k < k1.
struct Depth {
  int64_t k0, k1;
};

/// Tiles [tile0, tile1) x columns [n0, n1) of C.
struct GemmArea {
  int64_t tile0, tile1, n0, n1;
};

/// Packed panels of B for columns [n0, n1), `depth` deep, one after the other.
struct PackedB {
  const float* data;
  Depth depth;
  int64_t n0, n1;
};

/// Where op(B)(k, j) is.
inline const float* b_at(const GemmArgs& g, int64_t k, int64_t j) {
  return g.b + (g.b_transposed ? j * g.ldb + k : k * g.ldb + j);
}

/// One panel of B, columns from j, into dst [depth][panel].
void pack_b_panel(const GemmSizes& p, Depth depth, int64_t j, float* dst);
/// An area: a panel of B at a time, packed on the way, meets every tile of A.
void run_short_area(const GemmSizes& p, const GemmArea& area);
/// Tiles [first, last) against panels of B that lie ready: what does not stay in L1 passes by, from L2.
void run_tall_rows(const GemmSizes& p, int64_t first, int64_t last, const PackedB& b);

}  // namespace qkv::kernels::detail
