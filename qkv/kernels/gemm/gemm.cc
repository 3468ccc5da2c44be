// gemm: picks a way for the shape, cuts the work into blocks and runs them on the threads. Every element of C is
// one sum over k in an order that depends on the shape alone, so how blocks are dealt out cannot change a bit.
#include "qkv/kernels/gemm/gemm.h"

#include <algorithm>

#include "qkv/base/parallel.h"
#include "qkv/kernels/gemm/blocks.h"

namespace qkv::kernels {
namespace {

using detail::b_at;
using detail::ceil_div;
using detail::Depth;
using detail::gemm_scratch;
using detail::GemmKernels;
using detail::GemmSizes;
using detail::kHighTileRows;
using detail::kHighTileVectors;
using detail::kTileRows;
using detail::round_up;

// Depth of a panel of B that stays in L1 while tiles of A pass by; of a tile of A that stays there while panels do.
constexpr int64_t kBlockK = 256, kTallBlockK = 512;
// A panel of this many floats stays in L1 (half of the 32 KiB that most processors with AVX2 have).
constexpr int64_t kPanelFloats = int64_t{1} << 12;
// Up to this many rows, the block of A that meets a panel stays in L2, and every panel is packed where it is used.
constexpr int64_t kShortRows = 256;
// B is packed at most this many floats at a time (8 MiB), kChunkK deep.
constexpr int64_t kPackedFloats = int64_t{1} << 21, kChunkK = 2048;
// From this many columns on, tasks are blocks of columns.
constexpr int64_t kWideColumns = 2048;
// Below this many rows, a panel of B is read too few times for packing to pay off; unless B's rows are a multiple of
// 4 KiB apart, so that they share one set of L1 and every tile fetches them again (a third of the time of 14,256,1024).
constexpr int64_t kDirectRows = 42, kCrowdedStride = 1024;
// A B of this many floats is near: it comes from L2, and being read by more than one tile costs little.
constexpr int64_t kNearFloats = 1 << 16, kNearFloatsOfTiles = 1 << 18;
// Multiply-adds worth handing to another thread: about 2 µs of one core.
constexpr int64_t kTaskWork = 1 << 17;
// From this many weights on, a product of a few rows is worth a second thread.
constexpr int64_t kSharedWeights = 1 << 15;

// How many parts to cut n units into, at most `most`.
int64_t cut(int64_t n, int64_t unit, int64_t most) { return std::clamp<int64_t>(most, 1, ceil_div(n, unit)); }

// Not many rows: every task packs what it needs for itself. Tasks are blocks of columns, since B is the larger operand;
// in products of weight gradients A may be, and then they are blocks of rows.
void run_short(const GemmSizes& p) {
  const GemmArgs& g = p.g;
  const int64_t threads = num_threads();
  int64_t columns = 1, row_parts = 1;
  if (threads > 1) {
    // Two parts per thread even out interruptions, if they stay wide enough.
    const bool wide = !p.pack_a && g.N >= threads * 2 * 4 * p.width;
    const int64_t parts = std::max<int64_t>(1, std::min(g.M * g.N * g.K / kTaskWork, wide ? threads * 2 : threads));
    if (g.a_transposed && g.M >= g.N) row_parts = cut(p.tiles, 4, parts);
    columns = cut(g.N, p.width, ceil_div(parts, row_parts));
    // One or two panels for each cannot be cut evenly (100 columns are 64 and 36), many tiles can.
    const int64_t widest = round_up(ceil_div(g.N, columns), p.width);
    if (widest <= 2 * p.width && widest * columns * 8 > g.N * 9 && p.tiles >= 4 * parts) columns = 1;
    row_parts = std::max(row_parts, cut(p.tiles, 2, ceil_div(parts, columns)));
  }
  const int64_t step = round_up(ceil_div(g.N, columns), p.width);
  columns = ceil_div(g.N, step);
  parallel_for(row_parts * columns, [&](int64_t n) {
    const int64_t r = n / columns, n0 = n % columns * step;
    run_short_area(p, {p.tiles * r / row_parts, p.tiles * (r + 1) / row_parts, n0, std::min(g.N, n0 + step)});
  });
}

// Many rows: B is packed once, all threads together, then shared by the blocks of rows.
void run_tall(const GemmSizes& p) {
  const GemmArgs& g = p.g;
  const int64_t chunk_k = std::min(g.K, round_up(kChunkK, p.block_k));
  const int64_t chunk_n = std::max(p.width, kPackedFloats / chunk_k / p.width * p.width);
  float* packed = gemm_scratch().shared.get(std::min(chunk_n, round_up(g.N, p.width)) * chunk_k);
  for (int64_t k0 = 0; k0 < g.K; k0 += chunk_k) {
    const Depth depth{k0, std::min(g.K, k0 + chunk_k)};
    const int64_t K = depth.k1 - k0;
    for (int64_t n0 = 0; n0 < g.N; n0 += chunk_n) {
      const int64_t n1 = std::min(g.N, n0 + chunk_n);
      parallel_blocks(ceil_div(n1 - n0, p.width), std::max<int64_t>(1, 32768 / (K * p.width)),
                      [&](int64_t first, int64_t last) {
                        for (int64_t q = first; q < last; ++q)
                          pack_b_panel(p, depth, n0 + q * p.width, packed + q * p.width * K);
                      });
      const int64_t threads = num_threads();
      // As many for each thread, or the last ones would wait for one of them. In a long one, A is packed ahead.
      const int64_t wanted = cut(p.tiles, 16, threads * (p.pack_a ? 2 : 4));
      const int64_t parts = std::min(round_up(wanted, threads), p.tiles);
      parallel_for(parts, [&](int64_t n) {
        run_tall_rows(p, p.tiles * n / parts, p.tiles * (n + 1) / parts, {packed, depth, n0, n1});
      });
    }
  }
}

// Many rows and columns: every task packs a block of columns for itself, small enough to stay in its core's L2, and all
// rows pass by. Nobody waits for anybody.
void run_wide(const GemmSizes& p) {
  const GemmArgs& g = p.g;
  const int64_t threads = num_threads(), most = p.l2_columns();
  int64_t blocks = ceil_div(g.N, most);
  if (threads > 1) blocks = round_up(std::max(blocks, cut(g.N, 4 * p.width, 2 * threads)), threads);
  const int64_t step = round_up(ceil_div(g.N, blocks), p.width);
  parallel_for(ceil_div(g.N, step), [&](int64_t n) {
    const int64_t n0 = n * step, n1 = std::min(g.N, n0 + step);
    float* packed = gemm_scratch().b.get(step * p.block_k);
    for (int64_t k0 = 0; k0 < g.K; k0 += p.block_k) {
      const Depth depth{k0, std::min(g.K, k0 + p.block_k)};
      for (int64_t j = n0; j < n1; j += p.width) pack_b_panel(p, depth, j, packed + (j - n0) * (depth.k1 - k0));
      run_tall_rows(p, 0, p.tiles, {packed, depth, n0, n1});
    }
  });
}

// The first value of every element of C: zero, the bias, or C as it is.
void set_start(const GemmArgs& g, int64_t n0, int64_t n1) {
  if (g.accumulate) return;
  for (int64_t i = 0; i < g.M; ++i) {
    if (g.bias)
      std::copy(g.bias + n0, g.bias + n1, g.c + i * g.ldc + n0);
    else
      std::fill(g.c + i * g.ldc + n0, g.c + i * g.ldc + n1, 0.0f);
  }
}

void finish_columns(const GemmArgs& g, const GemmKernels& kernels, int64_t n0, int64_t n1) {
  if (g.activation == Act::none && !g.pre) return;
  kernels.finish({.activation = g.activation,
                  .rows = g.M,
                  .cols = n1 - n0,
                  .c = g.c + n0,
                  .pre = g.pre ? g.pre + n0 : nullptr,
                  .stride = g.ldc});
}

// Columns [n0, n1) of a product of a handful of rows, which is limited by how fast B can be read: it is read once, as
// it lies. A is by rows.
void few_rows_area(const GemmArgs& g, const GemmKernels& kernels, int64_t n0, int64_t n1) {
  if (n0 >= n1) return;
  set_start(g, n0, n1);
  const auto kernel = g.b_transposed ? kernels.few_rows_transposed : kernels.few_rows;
  kernel({.M = g.M,
          .N = n1 - n0,
          .K = g.K,
          .a = g.a,
          .a_stride = g.lda,
          .b = b_at(g, 0, n0),
          .b_stride = g.ldb,
          .c = g.c + n0,
          .c_stride = g.ldc});
  finish_columns(g, kernels, n0, n1);
}

// Columns of one of `parts` parts, whole vectors of them: what they hold does not depend on the cut.
int64_t part_columns(const GemmArgs& g, int64_t parts) { return round_up(ceil_div(g.N, parts), 16); }

void run_few_rows(GemmArgs g, const GemmKernels& kernels) {
  if (g.a_transposed) {
    float* rows = gemm_scratch().shared.get(g.M * g.K);
    for (int64_t k = 0; k < g.K; ++k)
      for (int64_t i = 0; i < g.M; ++i) rows[i * g.K + k] = g.a[k * g.lda + i];
    g.a = rows;
    g.lda = g.K;
  }
  // Two tasks for each thread: one that comes late leaves half of its share to the others.
  const int64_t parts = dot_parts(g, num_threads() > 1 ? 2 * num_threads() : 1);
  const int64_t most = g.b_transposed ? g.N : 4096 / g.M;  // the rows of C being summed stay in L1
  const int64_t step = std::min(part_columns(g, parts), round_up(std::max<int64_t>(most, 64), 16));
  parallel_blocks(g.N, step, [&](int64_t n0, int64_t n1) { few_rows_area(g, kernels, n0, n1); });
}

}  // namespace

int64_t dot_parts(const GemmArgs& g, int64_t threads) {
  return g.N * g.K >= kSharedWeights ? cut(g.N, 64, threads) : 1;
}

void dot_part(const GemmArgs& g, int64_t part, int64_t parts) noexcept {
  const int64_t step = part_columns(g, parts);
  few_rows_area(g, detail::gemm_kernels(), part * step, std::min(g.N, (part + 1) * step));
}

void gemm(const GemmArgs& g) {
  if (g.M <= 0 || g.N <= 0) return;
  const GemmKernels& kernels = detail::gemm_kernels();
  if (g.K <= 0) {
    set_start(g, 0, g.N);
    return finish_columns(g, kernels, 0, g.N);
  }
  if (g.M <= (g.b_transposed ? kDotRows : 4)) return run_few_rows(g, kernels);
  const int64_t panel = int64_t{kernels.vectors} * kernels.lanes;
  const bool direct = !g.b_transposed && g.M <= kDirectRows, crowded = g.ldb % kCrowdedStride == 0;
  // Where a large B is read in place, more rows at once read it less often.
  const bool far = direct && g.K * g.N > (g.M <= kHighTileRows ? kNearFloats : kNearFloatsOfTiles);
  const bool high = far && !g.a_transposed && kernels.vectors > kHighTileVectors && !(crowded && g.M > kHighTileRows);
  const bool pack_b = !direct || (crowded && !high && g.M > kTileRows);
  const int64_t tiles = ceil_div(g.M, high ? kHighTileRows : kTileRows);
  const bool tall = g.M > kShortRows, panel_stays = !tall || (!g.a_transposed && panel * kBlockK <= kPanelFloats);
  const GemmSizes sizes{.g = g,
                        .kernels = kernels,
                        .width = high ? int64_t{kHighTileVectors} * kernels.lanes : panel,
                        .panel = panel,
                        .block_k = ceil_div(g.K, ceil_div(g.K, panel_stays ? kBlockK : kTallBlockK)),
                        .tiles = tiles,
                        .tile_rows = g.M / tiles,
                        .longer_tiles = g.M % tiles,
                        .pack_a = g.a_transposed && g.N >= 2 * panel && panel >= kTileRows,
                        .pack_b = pack_b,
                        .far_b = far && !pack_b,
                        .panel_stays = panel_stays};
  if (tall && g.N >= kWideColumns && !sizes.pack_a)
    run_wide(sizes);
  else if (tall)
    run_tall(sizes);
  else
    run_short(sizes);
}

}  // namespace qkv::kernels
