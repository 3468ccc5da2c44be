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
using detail::GemmTiles;
using detail::kHighTileRows;
using detail::kHighTileVectors;
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
// Below so many rows a panel of B is read too few times for packing it to pay.
constexpr int64_t kDirectRows = 42;
// A B of so many floats is near: it comes from L1 or nearly so.
constexpr int64_t kNearFloats = 1 << 16;
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
  int64_t panel;    // columns of a packed panel
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

// Tiles at the right edge of C: computed at full width in a buffer, then the columns that exist are copied.
void edge_tiles(void (*kernel)(const GemmTiles&), GemmTiles t, int64_t rows, int64_t cols) {
  alignas(64) float buffer[kHighTileRows * kMaxWidth];
  const GemmTiles real = t;
  t.count = 1;
  t.c = buffer;
  t.c_stride = kMaxWidth;
  t.start = nullptr;
  for (int64_t n = 0; n < real.count; ++n) {
    kernel(t);
    const float* start = real.start ? real.start + n * real.start_next : nullptr;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j)
        real.c[n * real.c_next + i * real.c_stride + j] =
            buffer[i * kMaxWidth + j] + (start ? start[i * real.start_stride + j] : 0.0f);
    t.a += t.a_next;
    t.b += t.b_next;
  }
}

// Packed panels of A stored by columns: so many tiles side by side, [k][panel].
int64_t tiles_together(const Plan& p) { return p.panel / kTileRows; }

// A as tiles read it: in place, or packed from tile `first` on.
struct RowsOfA {
  const float* packed = nullptr;
  int64_t first = 0;
};

RowsOfA pack_a_tiles(const Plan& p, int64_t first, int64_t last, Depth depth) {
  const GemmArgs& g = p.g;
  const int64_t K = depth.k1 - depth.k0, together = tiles_together(p);
  float* packed = scratch().a.get(ceil_div(last - first, together) * K * p.panel);
  float* dst = packed;
  for (int64_t tile = first; tile < last; tile += together, dst += K * p.panel) {
    const int64_t m = p.tile_row(tile);
    // A few rows too many do no harm, and whole vectors are quicker.
    p.kernels.pack(a_at(g, m, depth.k0), g.lda, dst, K, std::min(p.panel, g.M - m));
  }
  return {packed, first};
}

Piece a_tile(const Plan& p, const RowsOfA& rows, int64_t tile, Depth depth) {
  const int64_t m = p.tile_row(tile);
  if (!rows.packed) return {a_at(p.g, m, depth.k0), p.g.lda};
  const int64_t panel = (tile - rows.first) / tiles_together(p), first = rows.first + panel * tiles_together(p);
  return {rows.packed + panel * (depth.k1 - depth.k0) * p.panel + m - p.tile_row(first), p.panel};
}

// Puts tile number `tile`, columns from j, into t; returns how many rows it has.
int64_t place(const Plan& p, const RowsOfA& a, int64_t tile, int64_t j, Depth depth, GemmTiles& t) {
  const GemmArgs& g = p.g;
  const int64_t m = p.tile_row(tile);
  const Piece at = a_tile(p, a, tile, depth), start = start_of(g, m, j, depth.k0);
  t.K = depth.k1 - depth.k0;
  t.a = at.data;
  t.a_stride = at.stride;
  t.c = g.c + m * g.ldc + j;
  t.c_stride = g.ldc;
  t.start = start.data;
  t.start_stride = start.stride;
  return p.tile_row(tile + 1) - m;
}

// Runs t, whose tiles have `rows` and `cols`, and together height x length.
void run(const Plan& p, const GemmTiles& t, Depth depth, int64_t rows, int64_t cols, int64_t height, int64_t length) {
  const GemmArgs& g = p.g;
  const int64_t vectors = ceil_div(cols, p.kernels.lanes);
  const auto kernel = t.packed ? p.kernels.packing_tiles[g.a_transposed][rows - 1]
                               : p.kernels.tiles[g.a_transposed][vectors - 1][rows - 1];
  if (cols == vectors * p.kernels.lanes)
    kernel(t);
  else
    edge_tiles(kernel, t, rows, cols);
  if (depth.k1 == g.K && (g.activation != Activation::none || g.pre))
    p.kernels.finish({.activation = g.activation,
                      .rows = height,
                      .cols = length,
                      .c = t.c,
                      .pre = g.pre ? g.pre + (t.c - g.c) : nullptr,
                      .stride = g.ldc});
}

// Tiles [first, last) below each other, columns from j. t says where B is and what to fetch meanwhile.
void run_column(const Plan& p, const RowsOfA& a, int64_t first, int64_t last, int64_t j, Depth depth, GemmTiles t) {
  while (first < last) {
    // As many as are of one size and lie together.
    int64_t end = first < p.longer_tiles ? std::min(last, p.longer_tiles) : last;
    if (a.packed) end = std::min(end, first + tiles_together(p) - (first - a.first) % tiles_together(p));
    const int64_t rows = place(p, a, first, j, depth, t), cols = std::min(p.width, p.g.N - j);
    t.count = end - first;
    t.a_next = p.g.a_transposed ? rows : rows * t.a_stride;
    t.c_next = rows * t.c_stride;
    t.start_next = rows * t.start_stride;
    run(p, t, depth, rows, cols, t.count * rows, cols);
    t.fetch.from += t.count * t.fetch.ahead;
    t.fetch.tiles -= t.count;
    first = end;
  }
}

// One tile of A against the panels of columns [j, end), b_next apart, beside each other.
void run_row(const Plan& p, const RowsOfA& a, int64_t tile, int64_t j, int64_t end, Depth depth, GemmTiles t) {
  const int64_t whole = (end - j) / p.width, rest = (end - j) % p.width;
  const int64_t rows = place(p, a, tile, j, depth, t);
  t.count = whole;
  t.c_next = p.width;
  t.start_next = p.width;
  if (whole > 0) run(p, t, depth, rows, p.width, rows, whole * p.width);
  if (rest == 0) return;
  t.b += whole * t.b_next;
  t.count = 1;
  place(p, a, tile, j + whole * p.width, depth, t);
  run(p, t, depth, rows, rest, rows, rest);
}

// Tiles [tile0, tile1) x columns [n0, n1) of C.
struct Area {
  int64_t tile0, tile1, n0, n1;
};

// While panel j of an area meets the tiles, they fetch the next panel of B, each a part of it.
GemmTiles::Fetch next_panel(const Plan& p, const Area& area, Depth depth, int64_t j) {
  const GemmArgs& g = p.g;
  const bool same_depth = j + p.width < area.n1;
  if (!same_depth && depth.k1 >= g.K) return {};
  const float* next = same_depth ? b_at(g, depth.k0, j + p.width) : b_at(g, depth.k1, area.n0);
  const int64_t steps = p.kernels.fetch_steps, groups = (depth.k1 - depth.k0) / steps;
  const int64_t tiles = area.tile1 - area.tile0;
  const int64_t rows = g.b_transposed ? p.width : steps;  // of B, for that many steps
  const int64_t units = ceil_div(rows, tiles);
  if (g.b_transposed)  // its rows lie along k
    return {next, units, g.ldb, steps, ceil_div(rows, units), units * g.ldb};
  return {next, units, g.ldb, units * g.ldb, ceil_div(rows, units), units * groups * g.ldb};
}

// A panel of B at a time, packed on the way, meets every tile of A.
void run_short_area(const Plan& p, const Area& area) {
  const GemmArgs& g = p.g;
  const int64_t steps = p.kernels.fetch_steps;
  float* panel = scratch().b.get(p.block_k * p.panel);
  for (int64_t k0 = 0; k0 < g.K; k0 += p.block_k) {
    const Depth depth{k0, std::min(g.K, k0 + p.block_k)};
    const RowsOfA a = p.pack_a ? pack_a_tiles(p, area.tile0, area.tile1, depth) : RowsOfA{};
    for (int64_t j = area.n0; j < area.n1; j += p.width) {
      const bool whole = j + p.width <= g.N;
      GemmTiles t{.b = b_at(g, k0, j), .b_stride = g.ldb};
      int64_t first = area.tile0;
      if (p.pack_b)
        t.fetch = next_panel(p, area, depth, j);
      else  // in place: a few rows ahead
        t.fetch = {t.b + 8 * g.ldb, steps, g.ldb, steps * g.ldb, p.width < p.panel ? p.tiles : 1, 0};
      if (whole && p.pack_b && !g.b_transposed) {
        t.packed = panel;
        run_column(p, a, first, first + 1, j, depth, t);
        ++first;
        t.packed = nullptr;
        t.fetch.from += t.fetch.ahead;
        --t.fetch.tiles;
      } else if (!whole || p.pack_b) {
        pack_b_panel(p, depth, j, panel);
      }
      if (!whole || p.pack_b) {
        t.b = panel;
        t.b_stride = p.panel;
      }
      run_column(p, a, first, area.tile1, j, depth, t);
    }
  }
}

// Packed panels of B for columns [n0, n1), `depth` deep.
struct PackedB {
  const float* data;
  Depth depth;
  int64_t n0, n1;
};

// Tiles [first, last) against panels of B that lie ready: a tile of A stays in L1 while they pass by, from L2.
void run_tall_rows(const Plan& p, int64_t first, int64_t last, const PackedB& b) {
  const GemmArgs& g = p.g;
  const int64_t block_n = p.l2_columns();
  const int64_t together = p.pack_a ? tiles_together(p) : last - first;
  for (int64_t k0 = b.depth.k0; k0 < b.depth.k1; k0 += p.block_k) {
    const Depth depth{k0, std::min(b.depth.k1, k0 + p.block_k)};
    for (int64_t group = first; group < last; group += together) {
      const int64_t group_end = std::min(last, group + together);
      const RowsOfA a = p.pack_a ? pack_a_tiles(p, group, group_end, depth) : RowsOfA{};
      for (int64_t j0 = b.n0; j0 < b.n1; j0 += block_n) {
        for (int64_t tile = group; tile < group_end; ++tile) {
          const int64_t K = b.depth.k1 - b.depth.k0;
          GemmTiles t{.b_next = K * p.width, .b = b.data + (j0 - b.n0) * K + (k0 - b.depth.k0) * p.width};
          t.b_stride = p.width;
          if (tile + 1 < group_end && !p.pack_a)  // the first panel's turn: the tile of A that will be wanted next
            t.fetch = {a_at(g, p.tile_row(tile + 1), k0), kTileRows, g.lda, p.kernels.fetch_steps, 1, 0};
          run_row(p, a, tile, j0, std::min(b.n1, j0 + block_n), depth, t);
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
  const int64_t panel = int64_t{kernels.vectors} * kernels.lanes;
  const bool pack_b = g.b_transposed || g.M > kDirectRows;
  // Where a B too large for L1 is read in place, more rows at once read it less often.
  const bool high = !pack_b && !g.a_transposed && g.K * g.N > kNearFloats && kernels.vectors > kHighTileVectors;
  const int64_t tiles = ceil_div(g.M, high ? kHighTileRows : kTileRows);
  const bool tall = g.M > kShortRows;
  const Plan plan{.g = g,
                  .kernels = kernels,
                  .width = high ? int64_t{kHighTileVectors} * kernels.lanes : panel,
                  .panel = panel,
                  .block_k = ceil_div(g.K, ceil_div(g.K, tall ? kTallBlockK : kBlockK)),
                  .tiles = tiles,
                  .tile_rows = g.M / tiles,
                  .longer_tiles = g.M % tiles,
                  .pack_a = g.a_transposed && g.N >= 2 * panel && panel >= kTileRows,
                  .pack_b = pack_b};
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
