// gemm: picks a way for the shape, cuts the work into blocks and runs them on the threads. Every element of C is
// one sum over k in an order that depends on the shape alone, so how blocks are dealt out cannot change a bit.
#include "qkv/kernels/gemm.h"

#include <algorithm>

#include "qkv/base/parallel.h"
#include "qkv/kernels/gemm_kernels.h"
#include "qkv/kernels/scratch.h"

namespace qkv::kernels {
namespace {

using detail::GemmKernels;
using detail::GemmTile;
using detail::kFetchFloats;
using detail::kFetchSteps;
using detail::kTileRows;
using detail::Scratch;

constexpr int64_t kMaxWidth = 64;  // columns of the widest tile
// Depth of a panel of B that stays in L1 while tiles of A pass by; of a tile of A that stays there while panels do.
constexpr int64_t kBlockK = 256, kTallBlockK = 512;
// Up to so many rows, the block of A that meets a panel stays in L2, and every panel is packed where it is used.
constexpr int64_t kShortRows = 256;
// B is packed at most this many floats at a time (8 MiB), kChunkK deep; of these, kBlockB for each lane of a vector
// pass by a tile of A at a time, from L2 (processors with wide vectors have more of it).
constexpr int64_t kPackedFloats = int64_t{1} << 21, kChunkK = 2048, kBlockB = int64_t{1} << 13;
// From so many columns on, tasks are blocks of columns.
constexpr int64_t kWideColumns = 2048;
// A stored by columns is packed so many tiles at a time: they stay in L2 while all of B passes by.
constexpr int64_t kPackedTiles = 16;
// Below so many rows a panel of B is read too few times for packing it to pay.
constexpr int64_t kDirectRows = 42;
// With B stored [N,K], up to so many rows are done as dot products: nothing to transpose.
constexpr int64_t kDotRows = 16;
// Multiply-adds worth handing to another thread: about 2 µs of one core.
constexpr int64_t kTaskWork = 1 << 17;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

struct ThreadScratch {
  Scratch a, b, shared;
};
ThreadScratch& scratch() {
  thread_local ThreadScratch s;
  return s;
}

// One call's sizes. Rows are cut into `tiles` equal tiles: 6 + 6 + 2 rows take longer than 5 + 5 + 4.
struct Plan {
  const GemmArgs& g;
  const GemmKernels& kernels;
  int64_t width;    // columns of a tile
  int64_t block_k;  // depth of a panel: K cut into equal parts of at most kBlockK
  int64_t tiles, tile_rows, longer_tiles;
  bool pack_a, pack_b;

  int64_t tile_row(int64_t tile) const { return tile * tile_rows + std::min(tile, longer_tiles); }
  // Columns of B, block_k deep, that stay in L2.
  int64_t l2_columns() const { return std::max<int64_t>(1, kBlockB * kernels.lanes / block_k / width) * width; }
};

// A piece of op(A) or op(B) as a tile reads it.
struct Piece {
  const float* data;
  int64_t stride;
};

// k0 <= k < k1.
struct Depth {
  int64_t k0, k1;
};

const float* a_at(const GemmArgs& g, int64_t i, int64_t k) {
  return g.a + (g.a_transposed ? k * g.lda + i : i * g.lda + k);
}
const float* b_at(const GemmArgs& g, int64_t k, int64_t j) {
  return g.b + (g.b_transposed ? j * g.ldb + k : k * g.ldb + j);
}

void pack_b_panel(const Plan& p, Depth depth, int64_t j, float* dst) {
  const auto pack = p.g.b_transposed ? p.kernels.pack_transposed : p.kernels.pack;
  pack(b_at(p.g, depth.k0, j), p.g.ldb, dst, depth.k1 - depth.k0, std::min(p.width, p.g.N - j));
}

// What a tile's sums are added to: C itself, the bias or nothing.
Piece start_of(const GemmArgs& g, int64_t i, int64_t j, int64_t k) {
  if (k > 0 || g.accumulate) return {g.c + i * g.ldc + j, g.ldc};
  if (g.bias) return {g.bias + j, 0};
  return {nullptr, 0};
}

// One tile at the right edge of C: computed at full width in a buffer, then the columns that exist are copied.
void edge_tile(void (*kernel)(const GemmTile&), GemmTile t, int64_t rows, int64_t cols) {
  alignas(64) float buffer[kTileRows * kMaxWidth];
  const GemmTile real = t;
  t.c = buffer;
  t.c_stride = kMaxWidth;
  t.start = nullptr;
  kernel(t);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j)
      real.c[i * real.c_stride + j] =
          buffer[i * kMaxWidth + j] + (real.start ? real.start[i * real.start_stride + j] : 0.0f);
}

// Fetch, in every sixty-four steps, `count` times sixty-four floats `step` apart, and go on `next` further.
void set_fetch(GemmTile& t, const float* from, int64_t step, int64_t next, int64_t count = kFetchSteps) {
  t.fetch = from;
  t.fetch_step = step;
  t.fetch_next = next;
  t.fetch_count = count;
  t.fetch_together = ceil_div(count * detail::kUnrolled, kFetchSteps);
}

// Tile number `tile`, columns from j. t says where A and B are and what to fetch meanwhile.
void run_tile(const Plan& p, int64_t tile, int64_t j, Depth depth, GemmTile t) {
  const GemmArgs& g = p.g;
  const int64_t m0 = p.tile_row(tile), rows = p.tile_row(tile + 1) - m0;
  const int64_t cols = std::min(p.width, g.N - j), vectors = ceil_div(cols, p.kernels.lanes);
  const Piece start = start_of(g, m0, j, depth.k0);
  t.K = depth.k1 - depth.k0;
  t.c = g.c + m0 * g.ldc + j;
  t.c_stride = g.ldc;
  t.start = start.data;
  t.start_stride = start.stride;
  const bool by_columns = g.a_transposed;
  const auto kernel = p.kernels.tile[by_columns][vectors - 1][rows - 1];
  if (t.packed)
    p.kernels.packing_tile[by_columns][rows - 1](t);
  else if (cols == vectors * p.kernels.lanes)
    kernel(t);
  else
    edge_tile(kernel, t, rows, cols);
  if (depth.k1 == g.K && (g.activation != Activation::none || g.pre))
    p.kernels.finish({.activation = g.activation,
                      .rows = rows,
                      .cols = cols,
                      .c = t.c,
                      .pre = g.pre ? g.pre + m0 * g.ldc + j : nullptr,
                      .stride = g.ldc});
}

// Tiles [first, last) of A, each as [k][row], one after the other.
const float* pack_a_tiles(const Plan& p, int64_t first, int64_t last, Depth depth) {
  const int64_t K = depth.k1 - depth.k0, m0 = p.tile_row(first);
  float* dst = scratch().a.get((p.tile_row(last) - m0) * K + 16);
  for (int64_t tile = first; tile < last; ++tile) {
    const int64_t m = p.tile_row(tile);
    p.kernels.pack_tile_columns(a_at(p.g, m, depth.k0), p.g.lda, dst + (m - m0) * K, K, p.tile_row(tile + 1) - m);
  }
  return dst;
}

// Where tile `tile` reads A: in place, or from what pack_a_tiles made of tiles from `first` on.
Piece a_tile(const Plan& p, int64_t tile, Depth depth, const float* packed, int64_t first) {
  const int64_t m = p.tile_row(tile);
  if (!packed) return {a_at(p.g, m, depth.k0), p.g.lda};
  return {packed + (m - p.tile_row(first)) * (depth.k1 - depth.k0), p.tile_row(tile + 1) - m};
}

// Tiles [tile0, tile1) x columns [n0, n1) of C.
struct Area {
  int64_t tile0, tile1, n0, n1;
};

// While panel j of an area meets the tiles, they fetch the next panel of B, each a part of it.
void fetch_next_panel(const Plan& p, const Area& area, int64_t tile, Depth depth, int64_t j, GemmTile& t) {
  const GemmArgs& g = p.g;
  const bool same_depth = j + p.width < area.n1;
  if (!same_depth && depth.k1 >= g.K) return;
  const float* next = same_depth ? b_at(g, depth.k0, j + p.width) : b_at(g, depth.k1, area.n0);
  const int64_t groups = (depth.k1 - depth.k0) / kFetchSteps, n = tile - area.tile0, tiles = area.tile1 - area.tile0;
  if (g.b_transposed) {  // its rows lie along k
    const int64_t count = ceil_div(p.width, tiles);
    if (n * count < p.width) set_fetch(t, next + n * count * g.ldb, g.ldb, kFetchSteps, count);
  } else {
    const int64_t count = ceil_div(kFetchSteps, tiles);
    if (n * count < kFetchSteps) set_fetch(t, next + n * count * groups * g.ldb, g.ldb, count * g.ldb, count);
  }
}

// A panel of B at a time, packed on the way, meets every tile of A.
void run_short_area(const Plan& p, const Area& area) {
  const GemmArgs& g = p.g;
  float* panel = scratch().b.get(p.block_k * p.width);
  for (int64_t k0 = 0; k0 < g.K; k0 += p.block_k) {
    const Depth depth{k0, std::min(g.K, k0 + p.block_k)};
    const float* a = p.pack_a ? pack_a_tiles(p, area.tile0, area.tile1, depth) : nullptr;
    for (int64_t j = area.n0; j < area.n1; j += p.width) {
      const bool whole = j + p.width <= g.N;
      const bool first_tile_packs = whole && p.pack_b && !g.b_transposed;
      Piece b{b_at(g, k0, j), g.ldb};
      if (!whole || (p.pack_b && !first_tile_packs)) {
        pack_b_panel(p, depth, j, panel);
        b = {panel, p.width};
      }
      for (int64_t tile = area.tile0; tile < area.tile1; ++tile) {
        const Piece rows = a_tile(p, tile, depth, a, area.tile0);
        GemmTile t{.a = rows.data, .a_stride = rows.stride, .b = b.data, .b_stride = b.stride};
        if (first_tile_packs && tile == area.tile0) t.packed = panel;
        if (p.pack_b)
          fetch_next_panel(p, area, tile, depth, j, t);
        else  // in place: a few rows ahead
          set_fetch(t, b.data + 8 * b.stride, b.stride, kFetchSteps * b.stride);
        run_tile(p, tile, j, depth, t);
        if (first_tile_packs) b = {panel, p.width};
      }
    }
  }
}

// Packed panels of B for columns [n0, n1), `depth` deep.
struct PackedB {
  const float* data;
  Depth depth;
  int64_t n0, n1;
};

// Tiles [first, last) against panels of B that lie ready.
void run_tall_rows(const Plan& p, int64_t first, int64_t last, const PackedB& b) {
  const GemmArgs& g = p.g;
  const int64_t block_n = p.l2_columns();
  const int64_t together = p.pack_a ? kPackedTiles : last - first;
  for (int64_t k0 = b.depth.k0; k0 < b.depth.k1; k0 += p.block_k) {
    const Depth depth{k0, std::min(b.depth.k1, k0 + p.block_k)};
    for (int64_t group = first; group < last; group += together) {
      const int64_t group_end = std::min(last, group + together);
      const float* a = p.pack_a ? pack_a_tiles(p, group, group_end, depth) : nullptr;
      for (int64_t j0 = b.n0; j0 < b.n1; j0 += block_n) {
        for (int64_t tile = group; tile < group_end; ++tile) {
          const Piece rows = a_tile(p, tile, depth, a, group);
          for (int64_t j = j0; j < std::min(b.n1, j0 + block_n); j += p.width) {
            const float* panel = b.data + (j - b.n0) * (b.depth.k1 - b.depth.k0) + (k0 - b.depth.k0) * p.width;
            GemmTile t{.a = rows.data, .a_stride = rows.stride, .b = panel, .b_stride = p.width};
            if (j == j0 && tile + 1 < group_end && !p.pack_a)  // the tile of A that will be wanted next
              set_fetch(t, a_at(g, p.tile_row(tile + 1), k0), g.lda, kFetchSteps, kTileRows);
            run_tile(p, tile, j, depth, t);
          }
        }
      }
    }
  }
}

// How many parts to cut n units into, at most `most`.
int64_t cut(int64_t n, int64_t unit, int64_t most) { return std::clamp<int64_t>(most, 1, ceil_div(n, unit)); }

// Not many rows: every task packs what it needs for itself. Tasks are blocks of columns, since B is the larger operand;
// in products of weight gradients A may be, and then they are blocks of rows.
void run_short(const Plan& p) {
  const GemmArgs& g = p.g;
  const int64_t threads = num_threads();
  int64_t columns = 1, row_parts = 1;
  if (threads > 1) {
    // Two parts a thread even out interruptions, if they stay wide enough.
    const bool wide = !p.pack_a && g.N >= threads * 2 * 4 * p.width;
    const int64_t parts = std::max<int64_t>(1, std::min(g.M * g.N * g.K / kTaskWork, wide ? threads * 2 : threads));
    if (g.a_transposed && g.M >= g.N) row_parts = cut(p.tiles, 4, parts);
    columns = cut(g.N, p.width, ceil_div(parts, row_parts));
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
void run_tall(const Plan& p) {
  const GemmArgs& g = p.g;
  const int64_t chunk_k = std::min(g.K, round_up(kChunkK, p.block_k));
  const int64_t chunk_n = std::max(p.width, kPackedFloats / chunk_k / p.width * p.width);
  float* packed = scratch().shared.get(std::min(chunk_n, round_up(g.N, p.width)) * chunk_k);
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
      // As many for each thread, or the last ones would wait for one of them.
      const int64_t parts = std::min(round_up(cut(p.tiles, 16, threads * 4), threads), p.tiles);
      parallel_for(parts, [&](int64_t n) {
        run_tall_rows(p, p.tiles * n / parts, p.tiles * (n + 1) / parts, {packed, depth, n0, n1});
      });
    }
  }
}

// Many rows and columns: every task packs a block of columns for itself, small enough to stay in its core's L2, and all
// rows pass by. Nobody waits for anybody.
void run_wide(const Plan& p) {
  const GemmArgs& g = p.g;
  const int64_t threads = num_threads(), most = p.l2_columns();
  int64_t blocks = ceil_div(g.N, most);
  if (threads > 1) blocks = round_up(std::max(blocks, cut(g.N, 4 * p.width, 2 * threads)), threads);
  const int64_t step = round_up(ceil_div(g.N, blocks), p.width);
  parallel_for(ceil_div(g.N, step), [&](int64_t n) {
    const int64_t n0 = n * step, n1 = std::min(g.N, n0 + step);
    float* packed = scratch().b.get(step * p.block_k);
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
  if (g.activation == Activation::none && !g.pre) return;
  kernels.finish({.activation = g.activation,
                  .rows = g.M,
                  .cols = n1 - n0,
                  .c = g.c + n0,
                  .pre = g.pre ? g.pre + n0 : nullptr,
                  .stride = g.ldc});
}

// A handful of rows: limited by how fast B can be read, so B is read once, as it lies.
void run_few_rows(const GemmArgs& g, const GemmKernels& kernels) {
  const float* a = g.a;
  int64_t a_stride = g.lda;
  if (g.a_transposed) {
    float* rows = scratch().shared.get(g.M * g.K);
    for (int64_t k = 0; k < g.K; ++k)
      for (int64_t i = 0; i < g.M; ++i) rows[i * g.K + k] = g.a[k * g.lda + i];
    a = rows;
    a_stride = g.K;
  }
  const auto kernel = g.b_transposed ? kernels.few_rows_transposed : kernels.few_rows;
  const int64_t worth = g.M * g.N * g.K / kTaskWork + 1;
  const int64_t parts = num_threads() == 1 ? 1 : cut(g.N, 64, std::min(worth, int64_t{4} * num_threads()));
  const int64_t most = g.b_transposed ? g.N : 4096 / g.M;  // the rows of C being summed stay in L1
  const int64_t step = round_up(std::min(ceil_div(g.N, parts), std::max<int64_t>(most, 64)), 16);
  parallel_for(ceil_div(g.N, step), [&](int64_t n) {
    const int64_t n0 = n * step, n1 = std::min(g.N, n0 + step);
    set_start(g, n0, n1);
    kernel({.M = g.M,
            .N = n1 - n0,
            .K = g.K,
            .a = a,
            .a_stride = a_stride,
            .b = b_at(g, 0, n0),
            .b_stride = g.ldb,
            .c = g.c + n0,
            .c_stride = g.ldc});
    finish_columns(g, kernels, n0, n1);
  });
}

}  // namespace

void gemm(const GemmArgs& g) noexcept {
  if (g.M <= 0 || g.N <= 0) return;
  const GemmKernels& kernels = detail::gemm_kernels();
  if (g.K <= 0) {
    set_start(g, 0, g.N);
    return finish_columns(g, kernels, 0, g.N);
  }
  if (g.M <= (g.b_transposed ? kDotRows : 4)) return run_few_rows(g, kernels);
  const int64_t width = kernels.vectors * kernels.lanes, tiles = ceil_div(g.M, kTileRows);
  const bool tall = g.M > kShortRows;
  const Plan plan{.g = g,
                  .kernels = kernels,
                  .width = width,
                  .block_k = ceil_div(g.K, ceil_div(g.K, tall ? kTallBlockK : kBlockK)),
                  .tiles = tiles,
                  .tile_rows = g.M / tiles,
                  .longer_tiles = g.M % tiles,
                  .pack_a = g.a_transposed && g.N >= 2 * width,
                  .pack_b = g.b_transposed || g.M > kDirectRows};
  if (tall && g.N >= kWideColumns && !plan.pack_a)
    run_wide(plan);
  else if (tall)
    run_tall(plan);
  else
    run_short(plan);
}

void gemm_batched(const GemmArgs& args, const GemmBatch& batch) noexcept {
  const auto run = [&](int64_t n) {
    GemmArgs item = args;
    item.a += n * batch.a_stride;
    item.b += n * batch.b_stride;
    item.c += n * batch.c_stride;
    if (item.pre) item.pre += n * batch.c_stride;
    gemm(item);
  };
  const int64_t work = args.M * args.N * args.K;
  if (batch.count < num_threads() && work > 8 * kTaskWork) {
    for (int64_t n = 0; n < batch.count; ++n) run(n);
    return;
  }
  const int64_t together = std::clamp<int64_t>(kTaskWork / std::max<int64_t>(work, 1), 1, 64);
  parallel_blocks(batch.count, together, [&](int64_t first, int64_t last) {
    for (int64_t n = first; n < last; ++n) run(n);
  });
}

}  // namespace qkv::kernels
