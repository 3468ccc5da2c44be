// gemm: picks a way for the shape, cuts the work into blocks and runs them on the threads. Every element of C is
// one sum over k in an order that depends on the shape alone, so how blocks are dealt out cannot change a bit.
#include "qkv/kernels/gemm.h"

#include <algorithm>
#include <cstring>

#include "qkv/base/parallel.h"
#include "qkv/kernels/gemm_kernels.h"
#include "qkv/kernels/scratch.h"

namespace qkv::kernels {
namespace {

using detail::GemmFewRows;
using detail::GemmFinish;
using detail::GemmKernels;
using detail::GemmTile;
using detail::Scratch;

constexpr int64_t kMaxWidth = 32;  // columns of the widest tile
// A panel of B, kBlockK deep and one tile wide, stays in L1 while kBlockM rows of A pass by from L2.
constexpr int64_t kBlockK = 256, kBlockM = 224;
// B is packed at most this many floats at a time (8 MiB).
constexpr int64_t kPackedFloats = int64_t{1} << 21, kChunkK = 2048;
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

// How A's and B's blocks are laid out for one call.
struct Plan {
  const GemmArgs& g;
  const GemmKernels& kernels;
  int64_t width;    // columns of a tile
  int64_t block_k;  // depth of a panel: K cut into equal parts of at most kBlockK
  bool pack_a, pack_b;
};

// Rows [m0, m1) x columns [n0, n1) of C, summed over [k0, k1).
struct Block {
  int64_t m0, m1, n0, n1, k0, k1;
};

const float* a_at(const GemmArgs& g, int64_t i, int64_t k) {
  return g.a + (g.a_transposed ? k * g.lda + i : i * g.lda + k);
}
const float* b_at(const GemmArgs& g, int64_t k, int64_t j) {
  return g.b + (g.b_transposed ? j * g.ldb + k : k * g.ldb + j);
}

void pack_b_panel(const Plan& p, int64_t k0, int64_t k1, int64_t j, float* dst) {
  const int64_t cols = std::min(p.width, p.g.N - j);
  (p.g.b_transposed ? p.kernels.pack_transposed : p.kernels.pack)(b_at(p.g, k0, j), p.g.ldb, dst, k1 - k0, cols);
}

// Rows [m0, m1) of A, columns [k0, k1), as they lie (row by row, or column by column when transposed) but close
// together: rows a power of two apart would all fall into the same few cache lines.
const float* pack_a_block(const Plan& p, const Block& at, int64_t& stride) {
  const GemmArgs& g = p.g;
  const float* src = a_at(g, at.m0, at.k0);
  stride = g.lda;
  if (!p.pack_a) return src;
  const int64_t run = g.a_transposed ? at.m1 - at.m0 : at.k1 - at.k0;
  const int64_t runs = g.a_transposed ? at.k1 - at.k0 : at.m1 - at.m0;
  stride = round_up(run, 16) + 16;
  float* dst = scratch().a.get(runs * stride);
  for (int64_t r = 0; r < runs; ++r)
    std::memcpy(dst + r * stride, src + r * g.lda, static_cast<size_t>(run) * sizeof(float));
  return dst;
}

// What a tile's sums are added to: C itself, the bias or zero.
struct Start {
  const float* data;
  int64_t stride;
};
alignas(64) constexpr float kZeros[kMaxWidth] = {};

Start start_of(const GemmArgs& g, int64_t i, int64_t j, int64_t k) {
  if (k > 0 || g.accumulate) return {g.c + i * g.ldc + j, g.ldc};
  if (g.bias) return {g.bias + j, 0};
  return {kZeros, 0};
}

// One tile at the right edge of C: computed at full width in a buffer, then the columns that exist are copied.
void edge_tile(void (*kernel)(const GemmTile&), GemmTile t, int64_t rows, int64_t cols) {
  alignas(64) float buffer[detail::kMaxTileRows * kMaxWidth];
  float* c = t.c;
  const float* start = t.start;
  const int64_t c_stride = t.c_stride, start_stride = t.start_stride;
  t.c = buffer;
  t.c_stride = kMaxWidth;
  t.start = kZeros;
  t.start_stride = 0;
  kernel(t);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) c[i * c_stride + j] = buffer[i * kMaxWidth + j] + start[i * start_stride + j];
}

// One panel of B against all row tiles of a block. b is the panel's row k0.
void run_panel(const Plan& p, const Block& at, const float* a, int64_t a_stride, int64_t j, const float* b,
               int64_t b_stride) {
  const GemmArgs& g = p.g;
  const int64_t rows = at.m1 - at.m0, cols = std::min(p.width, at.n1 - j), lanes = p.kernels.lanes;
  const int64_t vectors = cols <= lanes ? 1 : 2;
  const int64_t tiles = ceil_div(rows, p.kernels.tile_rows);
  for (int64_t n = 0; n < tiles; ++n) {
    // Equal tiles: 14 + 14 + 4 rows take longer than 11 + 11 + 10.
    const int64_t r0 = rows * n / tiles, r1 = rows * (n + 1) / tiles;
    const Start start = start_of(g, at.m0 + r0, j, at.k0);
    const GemmTile t{.K = at.k1 - at.k0,
                     .a = a + (g.a_transposed ? r0 : r0 * a_stride),
                     .a_stride = a_stride,
                     .b = b,
                     .b_stride = b_stride,
                     .c = g.c + (at.m0 + r0) * g.ldc + j,
                     .c_stride = g.ldc,
                     .start = start.data,
                     .start_stride = start.stride};
    const auto kernel = p.kernels.tile[g.a_transposed][vectors - 1][r1 - r0 - 1];
    if (cols == vectors * lanes)
      kernel(t);
    else
      edge_tile(kernel, t, r1 - r0, cols);
  }
  if (at.k1 == g.K && (g.activation != Activation::none || g.pre))
    p.kernels.finish({.activation = g.activation,
                      .rows = rows,
                      .cols = cols,
                      .c = g.c + at.m0 * g.ldc + j,
                      .pre = g.pre ? g.pre + at.m0 * g.ldc + j : nullptr,
                      .stride = g.ldc});
}

// A block of C. packed_b, when given, holds all panels of columns [n_first, …) over [at.k0, at.k1).
void run_block(const Plan& p, const Block& at, const float* packed_b, int64_t n_first) {
  const GemmArgs& g = p.g;
  for (int64_t k0 = at.k0; k0 < at.k1; k0 += p.block_k) {
    Block part = at;
    part.k0 = k0;
    part.k1 = std::min(at.k1, k0 + p.block_k);
    int64_t a_stride = 0;
    const float* a = pack_a_block(p, part, a_stride);
    for (int64_t j = at.n0; j < at.n1; j += p.width) {
      if (packed_b) {
        const float* panel = packed_b + (j - n_first) * (at.k1 - at.k0) + (k0 - at.k0) * p.width;
        run_panel(p, part, a, a_stride, j, panel, p.width);
      } else if (p.pack_b || j + p.width > g.N) {
        float* panel = scratch().b.get(p.block_k * p.width);
        pack_b_panel(p, part.k0, part.k1, j, panel);
        run_panel(p, part, a, a_stride, j, panel, p.width);
      } else {
        run_panel(p, part, a, a_stride, j, b_at(g, k0, j), g.ldb);
      }
    }
  }
}

// How many equal parts, a multiple of `unit` each, to cut n into, at most `most`.
int64_t cut(int64_t n, int64_t unit, int64_t most) { return std::clamp<int64_t>(most, 1, ceil_div(n, unit)); }

// All of C's rows fit one block: every panel of B is used by one task, which packs it for itself.
void run_short(const Plan& p) {
  const GemmArgs& g = p.g;
  const int64_t threads = num_threads();
  int64_t parts = 1;
  if (threads > 1) {
    const int64_t worth = g.M * g.N * g.K / kTaskWork;
    parts = cut(g.N, p.width, std::min(worth, threads * 2));
    if (parts < threads) parts = cut(g.N, p.width, std::min(worth, threads));
  }
  const int64_t step = round_up(ceil_div(g.N, parts), p.width);
  parallel_for(ceil_div(g.N, step), [&](int64_t n) {
    run_block(p, {0, g.M, n * step, std::min(g.N, (n + 1) * step), 0, g.K}, nullptr, 0);
  });
}

// Many rows: B is packed once, all threads together, then shared by the blocks of rows.
void run_tall(const Plan& p) {
  const GemmArgs& g = p.g;
  const int64_t chunk_k = std::min(g.K, round_up(kChunkK, p.block_k));
  const int64_t chunk_n = std::max(p.width, kPackedFloats / chunk_k / p.width * p.width);
  float* packed = scratch().shared.get(std::min(chunk_n, round_up(g.N, p.width)) * chunk_k);
  for (int64_t k0 = 0; k0 < g.K; k0 += chunk_k) {
    const int64_t k1 = std::min(g.K, k0 + chunk_k), depth = k1 - k0;
    for (int64_t n0 = 0; n0 < g.N; n0 += chunk_n) {
      const int64_t n1 = std::min(g.N, n0 + chunk_n), panels = ceil_div(n1 - n0, p.width);
      parallel_blocks(panels, std::max<int64_t>(1, 32768 / (depth * p.width)), [&](int64_t first, int64_t last) {
        for (int64_t q = first; q < last; ++q) pack_b_panel(p, k0, k1, n0 + q * p.width, packed + q * p.width * depth);
      });
      const int64_t threads = num_threads();
      int64_t row_parts = ceil_div(g.M, kBlockM);
      row_parts = std::max(row_parts, cut(g.M, p.kernels.tile_rows * 4, round_up(row_parts, threads)));
      const int64_t column_parts =
          row_parts >= threads * 4 ? 1 : cut(n1 - n0, p.width * 4, ceil_div(threads * 4, row_parts));
      const int64_t step_n = round_up(ceil_div(n1 - n0, column_parts), p.width);
      const int64_t columns = ceil_div(n1 - n0, step_n);
      parallel_for(row_parts * columns, [&](int64_t task) {
        const int64_t r = task / columns, c = task % columns;
        run_block(p,
                  {g.M * r / row_parts, g.M * (r + 1) / row_parts, n0 + c * step_n, std::min(n1, n0 + (c + 1) * step_n),
                   k0, k1},
                  packed, n0);
      });
    }
  }
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
  const int64_t width = 2 * kernels.lanes;
  const int64_t depth = ceil_div(g.K, ceil_div(g.K, kBlockK));
  const bool pack_b = g.b_transposed || g.M > kDirectRows;
  const bool pack_a = g.N > 4 * width;
  const Plan plan{.g = g, .kernels = kernels, .width = width, .block_k = depth, .pack_a = pack_a, .pack_b = pack_b};
  if (g.M <= kBlockM)
    run_short(plan);
  else
    run_tall(plan);
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
