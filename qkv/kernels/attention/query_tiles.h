// How attention work is cut up: tiles of queries, tiles and chunks of keys.
#pragma once

#include <cstdint>
#include <vector>

#include "qkv/kernels/attention/visibility.h"

namespace qkv::kernels {

constexpr int kTileQ = 64;         // queries of a tile: the row length of a score tile, lanes are queries
constexpr int kTileK = 128;        // most keys of a tile
constexpr int64_t kChunkK = 2048;  // keys after which a running softmax is closed and merged into the result

/// Keys of a tile: as many as leave its scores and the rows they meet in the first-level cache.
inline int64_t tile_keys(const AttentionDims& dims) { return dims.D + dims.Dv <= 64 ? kTileK : kTileK / 2; }

/// Up to kTileQ query rows that share one key/value head.
struct QueryTile {
  Sequence seq;
  int64_t kv = 0;
  int rows = 0;
  bool one_head = true;                 // all rows of one head, queries consecutive
  int32_t head[kTileQ], query[kTileQ];  // of each row
  int32_t lo[kTileQ], hi[kTileQ];       // keys in range; empty rows and lanes past `rows` have lo == hi == 0
  int64_t begin = 0, end = 0;           // union of the rows' ranges
  bool any_empty = false;
  bool by_position = false;  // all rows of one head, ranges by position alone
  bool same_ranges = false;  // as those of the tile that was here before: many short sequences are alike

  bool empty(int r) const { return lo[r] >= hi[r]; }
};

/// Tiles of one (sequence, key/value head): short query blocks of grouped heads share tiles.
int64_t tile_count(const AttentionDims& dims, const Sequence& s);
/// The t-th of them.
void make_tile(const AttentionInputs<float>& in, const Sequence& s, int64_t kv, int64_t t, QueryTile& tile);

/// A tile of given queries of one head. `tile` may hold another of the same call, whose ranges are kept if equal.
void make_head_tile(const AttentionInputs<float>& in, const Sequence& s, int64_t head, int64_t first, QueryTile& tile);

/// Numbers every tile of a call, so that tasks can be handed out by index.
class TileList {
 public:
  explicit TileList(const AttentionInputs<float>& in);
  int64_t size() const { return size_; }
  void get(int64_t index, QueryTile& tile) const;
  /// Longest range of keys of any sequence.
  int64_t max_keys() const { return max_keys_; }

 private:
  const AttentionInputs<float>& in_;
  std::vector<int64_t> starts_;  // first tile of each sequence; empty when all have as many
  int64_t per_sequence_ = 0, size_ = 0, max_keys_ = 0;
};

}  // namespace qkv::kernels
