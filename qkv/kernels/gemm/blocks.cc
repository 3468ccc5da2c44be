// Blocks of a product: tiles of A, in place or packed, meet panels of B, in place or packed.
#include "qkv/kernels/gemm/blocks.h"

#include <utility>

namespace qkv::kernels::detail {
namespace {

// This many packed floats per lane of a vector stay in L2 (processors with wide vectors have more of it): of B,
// which pass by a tile of A; and of A where it has to be packed, twice.
constexpr int64_t kNearFloatsOfLane = int64_t{1} << 13, kNearFloatsOfA = int64_t{1} << 11;
// This many tiles of A pass by a panel of B that stays in L1: 96 rows stay in L2 until the last panel, even where all
// their strides share the same few cache sets.
constexpr int64_t kPassingTiles = 16;

// A piece of op(A) or op(B) as a tile reads it.
struct Piece {
  const float* data;
  int64_t stride;
};

const float* a_at(const GemmArgs& g, int64_t i, int64_t k) {
  return g.a + (g.a_transposed ? k * g.lda + i : i * g.lda + k);
}
// What a tile's sums are added to: C itself, the bias or nothing.
Piece start_of(const GemmArgs& g, int64_t i, int64_t j, int64_t k) {
  if (k > 0 || g.accumulate) return {g.c + i * g.ldc + j, g.ldc};
  if (g.bias) return {g.bias + j, 0};
  return {nullptr, 0};
}

// Packed panels of A stored by columns: this many tiles side by side, [k][panel].
int64_t tiles_together(const GemmSizes& p) { return p.panel / kTileRows; }

// This many of them are packed at a time: they stay in L2 while all of B passes by.
int64_t packed_tiles(const GemmSizes& p) {
  return std::max<int64_t>(1, kNearFloatsOfA * p.kernels.lanes / (p.block_k * p.panel)) * tiles_together(p);
}

// A as tiles read it: in place, or packed from tile `first` on.
struct RowsOfA {
  const float* packed = nullptr;
  int64_t first = 0;
};

// A part of a product: what tiles [first, last) add up for k in depth.
struct Part {
  int64_t first, last;
  Depth depth;
};

// Packs A part by part: while the tiles of a part multiply, they fetch some rows of the next one, which are packed
// after them. Packing what was far away took a tenth of the time. The rows cannot all be fetched first: where their
// stride is a power of two, they share a few sets of the caches.
class PackedA {
 public:
  explicit PackedA(const GemmSizes& p) : p_(p) {}

  // The part to pack next; the one before stays where it is.
  void begin(const Part& part) {
    if (!p_.pack_a) return;
    std::swap(buffer_, other_);
    part_ = part;
    tile_ = part.first;
    to_ = packed_ = buffer_->get(ceil_div(part.last - part.first, tiles_together(p_)) * depth() * p_.panel);
  }

  // Packs what was fetched, and says what `tiles` tiles of depth K may fetch now.
  GemmTiles::Fetch fetch(int64_t tiles, int64_t K) {
    pack();
    if (tile_ >= part_.last) return {};
    const int64_t units = p_.kernels.fetch_together, stride = p_.g.lda, each = units * (K / p_.kernels.fetch_steps);
    fetched_ = std::min(each * tiles, depth() - row_);
    // The line where a row begins came with the panel before; the one where it ends may be one more.
    return {from() + kLineFloats - 1, units, stride, units * stride, tiles, each * stride};
  }

  // Packs the rest.
  RowsOfA finish() {
    for (pack(); tile_ < part_.last; pack()) fetched_ = depth() - row_;
    return {packed_, part_.first};
  }

 private:
  static constexpr int64_t kLineFloats = 16;

  int64_t depth() const { return part_.depth.k1 - part_.depth.k0; }
  const float* from() const { return a_at(p_.g, p_.tile_row(tile_), part_.depth.k0 + row_); }

  void pack() {
    if (fetched_ == 0) return;
    // A few rows too many do no harm, and whole vectors are quicker.
    const int64_t m = p_.tile_row(tile_), rows = round_up(p_.tile_row(part_.last) - m, p_.kernels.lanes);
    p_.kernels.pack(from(), p_.g.lda, to_, fetched_, std::min({p_.panel, rows, p_.g.M - m}));
    to_ += fetched_ * p_.panel;
    row_ += std::exchange(fetched_, 0);
    if (row_ < depth()) return;
    row_ = 0;
    tile_ += tiles_together(p_);
  }

  const GemmSizes& p_;
  GrowingBuffer *buffer_ = &gemm_scratch().a[0], *other_ = &gemm_scratch().a[1];
  Part part_ = {};
  float *packed_ = nullptr, *to_ = nullptr;
  int64_t tile_ = 0, row_ = 0, fetched_ = 0;  // the panel that begins with tile_: rows packed, and fetched after them
};

// A part of the sums, with A as it is read there, and what is packed meanwhile.
struct Pass {
  const GemmSizes& p;
  Depth depth;
  RowsOfA a;
  PackedA& next;
};

Piece a_tile(const Pass& pass, int64_t tile) {
  const GemmSizes& p = pass.p;
  const RowsOfA& a = pass.a;
  const int64_t m = p.tile_row(tile);
  if (!a.packed) return {a_at(p.g, m, pass.depth.k0), p.g.lda};
  const int64_t panel = (tile - a.first) / tiles_together(p), first = a.first + panel * tiles_together(p);
  return {a.packed + panel * (pass.depth.k1 - pass.depth.k0) * p.panel + m - p.tile_row(first), p.panel};
}

// Puts tile number `tile`, columns from j, into t; returns how many rows it has.
int64_t place(const Pass& pass, int64_t tile, int64_t j, GemmTiles& t) {
  const GemmArgs& g = pass.p.g;
  const int64_t m = pass.p.tile_row(tile);
  const Piece at = a_tile(pass, tile), start = start_of(g, m, j, pass.depth.k0);
  t.K = pass.depth.k1 - pass.depth.k0;
  t.a = at.data;
  t.a_stride = at.stride;
  t.c = g.c + m * g.ldc + j;
  t.c_stride = g.ldc;
  t.start = start.data;
  t.start_stride = start.stride;
  return pass.p.tile_row(tile + 1) - m;
}

enum class Lie { beside, below };

// Runs t on tiles of this many rows and columns, laid out like this.
void run(const Pass& pass, GemmTiles& t, int64_t rows, int64_t cols, Lie lie) {
  const GemmSizes& p = pass.p;
  const GemmArgs& g = p.g;
  const int64_t vectors = ceil_div(cols, p.kernels.lanes);
  const auto kernel = t.packed            ? p.kernels.packing_tiles[g.a_transposed][rows - 1]
                      : p.width < p.panel ? p.kernels.high_tiles[vectors - 1][rows - 1]
                                          : p.kernels.tiles[g.a_transposed][vectors - 1][rows - 1];
  t.edge = cols % p.kernels.lanes;
  kernel(t);
  if (pass.depth.k1 == g.K && (g.activation != Act::none || g.pre))
    p.kernels.finish({.activation = g.activation,
                      .rows = lie == Lie::below ? t.count * rows : rows,
                      .cols = lie == Lie::beside ? t.count * cols : cols,
                      .c = t.c,
                      .pre = g.pre ? g.pre + (t.c - g.c) : nullptr,
                      .stride = g.ldc});
}

// Tiles [first, last) below each other, columns from j. t says where B is and what to prefetch.
void run_column(const Pass& pass, int64_t first, int64_t last, int64_t j, GemmTiles t) {
  const GemmSizes& p = pass.p;
  const int64_t cols = std::min(p.width, p.g.N - j);
  while (first < last) {
    // As many as are of one size and lie together.
    int64_t end = first < p.longer_tiles ? std::min(last, p.longer_tiles) : last;
    if (pass.a.packed) end = std::min(end, first + tiles_together(p) - (first - pass.a.first) % tiles_together(p));
    const int64_t rows = place(pass, first, j, t);
    t.count = end - first;
    t.a_next = p.g.a_transposed ? rows : rows * t.a_stride;
    t.c_next = rows * t.c_stride;
    t.start_next = rows * t.start_stride;
    if (p.pack_a && t.fetch.tiles <= 0) t.fetch = pass.next.fetch(t.count, t.K);
    run(pass, t, rows, cols, Lie::below);
    t.fetch.from += t.count * t.fetch.ahead;
    t.fetch.tiles -= t.count;
    first = end;
  }
}

// One tile of A against the panels of columns [j, end), b_next apart, beside each other.
void run_row(const Pass& pass, int64_t tile, int64_t j, int64_t end, GemmTiles t) {
  const int64_t width = pass.p.width, whole = (end - j) / width, rest = (end - j) % width;
  const int64_t rows = place(pass, tile, j, t);
  t.count = whole;
  t.c_next = width;
  t.start_next = width;
  if (whole > 0) run(pass, t, rows, width, Lie::beside);
  if (rest == 0) return;
  t.b += whole * t.b_next;
  t.count = 1;
  place(pass, tile, j + whole * width, t);
  run(pass, t, rows, rest, Lie::beside);
}

// While panel j of an area meets the tiles, they fetch the next panel of B, each a part of it.
GemmTiles::Fetch next_panel(const GemmSizes& p, const GemmArea& area, Depth depth, int64_t j) {
  const GemmArgs& g = p.g;
  const bool same_depth = j + p.width < area.n1;
  if (!same_depth && depth.k1 >= g.K) return {};
  const float* next = same_depth ? b_at(g, depth.k0, j + p.width) : b_at(g, depth.k1, area.n0);
  const int64_t steps = p.kernels.fetch_steps, groups = (depth.k1 - depth.k0) / steps;
  // The rest of the tiles fetches A.
  const int64_t tiles = ceil_div(area.tile1 - area.tile0, p.pack_a ? 2 : 1);
  const int64_t rows = g.b_transposed ? p.width : steps;  // of B, for that many steps
  const int64_t units = round_up(ceil_div(rows, tiles), p.kernels.fetch_together);
  if (g.b_transposed)  // its rows lie along k
    return {next, units, g.ldb, steps, ceil_div(rows, units), units * g.ldb};
  return {next, units, g.ldb, units * g.ldb, ceil_div(rows, units), units * groups * g.ldb};
}

// Packed panel of columns from j, for the depth of this pass.
const float* packed_panel(const Pass& pass, const PackedB& b, int64_t j) {
  return b.data + (j - b.n0) * (b.depth.k1 - b.depth.k0) + (pass.depth.k0 - b.depth.k0) * pass.p.width;
}

// A panel of B at a time meets all the tiles; meanwhile they fetch the next one, each a part of it.
void pass_tiles(const Pass& pass, int64_t first, int64_t last, const PackedB& b) {
  const GemmSizes& p = pass.p;
  const int64_t steps = p.kernels.fetch_steps, groups = (pass.depth.k1 - pass.depth.k0) / steps;
  const int64_t units = round_up(ceil_div(steps, last - first), p.kernels.fetch_together);
  for (int64_t j = b.n0; j < b.n1; j += p.width) {
    GemmTiles t{.b = packed_panel(pass, b, j), .b_stride = p.width};
    if (j + p.width < b.n1)
      t.fetch = {packed_panel(pass, b, j + p.width),
                 units,
                 p.width,
                 units * p.width,
                 ceil_div(steps, units),
                 units * groups * p.width};
    run_column(pass, first, last, j, t);
  }
}

// A tile of A at a time meets the panels of as many columns as stay in L2.
void pass_panels(const Pass& pass, int64_t first, int64_t last, const PackedB& b) {
  const GemmSizes& p = pass.p;
  const int64_t block_n = p.l2_columns();
  for (int64_t j0 = b.n0; j0 < b.n1; j0 += block_n) {
    const int64_t end = std::min(b.n1, j0 + block_n);
    for (int64_t tile = first; tile < last; ++tile) {
      GemmTiles t{.b_next = (b.depth.k1 - b.depth.k0) * p.width, .b = packed_panel(pass, b, j0), .b_stride = p.width};
      if (p.pack_a)
        t.fetch = pass.next.fetch(ceil_div(end - j0, p.width), pass.depth.k1 - pass.depth.k0);
      else if (tile + 1 < last)  // the first panel's turn: the tile of A that will be wanted next
        t.fetch = {a_at(p.g, p.tile_row(tile + 1), pass.depth.k0), kTileRows, p.g.lda, p.kernels.fetch_steps, 1, 0};
      run_row(pass, tile, j0, end, t);
    }
  }
}

}  // namespace

GemmScratch& gemm_scratch() {
  thread_local GemmScratch s;
  return s;
}

int64_t GemmSizes::l2_columns() const {
  return std::max<int64_t>(1, kNearFloatsOfLane * kernels.lanes / block_k / width) * width;
}

void pack_b_panel(const GemmSizes& p, Depth depth, int64_t j, float* dst) {
  const auto pack = p.g.b_transposed ? p.kernels.pack_transposed : p.kernels.pack;
  pack(b_at(p.g, depth.k0, j), p.g.ldb, dst, depth.k1 - depth.k0, std::min(p.width, p.g.N - j));
}

void run_short_area(const GemmSizes& p, const GemmArea& area) {
  const GemmArgs& g = p.g;
  const int64_t steps = p.kernels.fetch_steps;
  float* panel = gemm_scratch().b.get(p.block_k * p.panel);
  PackedA packed(p);
  packed.begin({area.tile0, area.tile1, {0, p.block_k}});
  for (int64_t k0 = 0; k0 < g.K; k0 += p.block_k) {
    const Depth depth{k0, std::min(g.K, k0 + p.block_k)};
    const Pass pass{p, depth, packed.finish(), packed};
    if (depth.k1 < g.K) packed.begin({area.tile0, area.tile1, {depth.k1, std::min(g.K, depth.k1 + p.block_k)}});
    for (int64_t j = area.n0; j < area.n1; j += p.width) {
      const bool whole = j + p.width <= g.N;
      GemmTiles t{.b = b_at(g, k0, j), .b_stride = g.ldb};
      int64_t first = area.tile0;
      if (p.pack_b)
        t.fetch = next_panel(p, area, depth, j);
      else if (p.far_b && p.width == p.panel)  // a few rows ahead; high tiles do it by themselves
        t.fetch = {t.b + 8 * g.ldb, steps, g.ldb, steps * g.ldb, p.tiles, 0};
      if (whole && p.pack_b && !g.b_transposed) {
        t.packed = panel;
        run_column(pass, first, first + 1, j, t);
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
      run_column(pass, first, area.tile1, j, t);
    }
  }
}

void run_tall_rows(const GemmSizes& p, int64_t first, int64_t last, const PackedB& b) {
  const int64_t together = p.pack_a ? packed_tiles(p) : p.panel_stays ? kPassingTiles : last - first;
  const int64_t groups = ceil_div(last - first, together);
  const int64_t parts = groups * ceil_div(b.depth.k1 - b.depth.k0, p.block_k);
  const auto part = [&](int64_t n) {
    const int64_t group = first + n % groups * together, k0 = b.depth.k0 + n / groups * p.block_k;
    return Part{group, std::min(last, group + together), {k0, std::min(b.depth.k1, k0 + p.block_k)}};
  };
  PackedA packed(p);
  packed.begin(part(0));
  for (int64_t n = 0; n < parts; ++n) {
    const Part now = part(n);
    const Pass pass{p, now.depth, packed.finish(), packed};
    if (n + 1 < parts) packed.begin(part(n + 1));
    if (p.panel_stays)
      pass_tiles(pass, now.first, now.last, b);
    else
      pass_panels(pass, now.first, now.last, b);
  }
}

}  // namespace qkv::kernels::detail
