// Cuts attention into query tiles.
#include "qkv/kernels/attention/query_tiles.h"

#include <algorithm>

namespace qkv::kernels {
namespace {

// Rows of several heads may share a tile when one head's queries would leave most of it empty.
bool shares_heads(const AttentionDims& dims, const Sequence& s) { return dims.H > dims.Hkv && s.Lq < kTileQ; }

// A mask or bias that is the same for all rows of the tile hides its outer keys from all: shrink the range.
template <class Hidden>
void trim(KeyRange& range, Hidden&& hidden) {
  while (range.hi > range.lo && hidden(range.hi - 1)) --range.hi;
  while (range.lo < range.hi && hidden(range.lo)) ++range.lo;
}

// What every row of the tile has in common; causal rule, window and lengths per query come on top.
KeyRange common_range(const AttentionInputs<float>& in, const QueryTile& t) {
  ScoreArgs<float> rule = in.rule;
  rule.causal = false;
  rule.window_left = rule.window_right = -1;
  if (rule.lens_q_stride != 0) rule.key_lens = nullptr;
  KeyRange range = key_range(rule, t.seq, t.query[0]);
  const auto same = [&](int64_t q_stride, int64_t h_stride) { return q_stride == 0 && (t.one_head || h_stride == 0); };
  if (rule.mask.data && same(rule.mask.q_stride, rule.mask.h_stride)) {
    const uint8_t* mask = rule.mask.row(t.seq.b, t.head[0], 0);
    trim(range, [&](int64_t j) { return mask[j * rule.mask.k_stride] == 0; });
  }
  if (rule.bias.data && same(rule.bias.q_stride, rule.bias.h_stride)) {
    const float* bias = rule.bias.row(t.seq.b, t.head[0], 0);
    trim(range, [&](int64_t j) { return !(bias[j * rule.bias.k_stride] > -std::numeric_limits<float>::infinity()); });
  }
  return range;
}

// [lo, hi) of every row, with the rules by position as plain arithmetic: this runs once for every tile.
void set_ranges(const AttentionInputs<float>& in, QueryTile& t) {
  const ScoreArgs<float>& rule = in.rule;
  const KeyRange common = common_range(in, t);
  constexpr int64_t kFar = int64_t{1} << 40;
  const int64_t offset = t.seq.offset, left = rule.window_left < 0 ? kFar : std::min(rule.window_left, kFar);
  int64_t right = rule.window_right < 0 ? kFar : std::min(rule.window_right, kFar);
  if (rule.causal) right = std::min<int64_t>(right, 0);
  const bool lens = rule.key_lens && rule.lens_q_stride != 0;
  int64_t begin = t.seq.Lk, end = 0;
  bool any_empty = false;
  for (int r = 0; r < t.rows; ++r) {
    const int64_t p = t.query[r] + offset;
    const int64_t lo = std::max(common.lo, p - left);
    int64_t hi = std::min(common.hi, p + right + 1);
    if (lens) hi = std::min(hi, rule.key_lens[t.seq.b * rule.lens_b_stride + t.query[r] * rule.lens_q_stride]);
    const bool some = lo < hi;
    t.lo[r] = static_cast<int32_t>(some ? lo : 0);
    t.hi[r] = static_cast<int32_t>(some ? hi : 0);
    begin = some ? std::min(begin, lo) : begin;
    end = some ? std::max(end, hi) : end;
    any_empty |= !some;
  }
  std::fill(t.lo + t.rows, t.lo + kTileQ, 0);
  std::fill(t.hi + t.rows, t.hi + kTileQ, 0);
  t.begin = std::min(begin, end);
  t.end = end;
  t.any_empty = any_empty;
}

}  // namespace

int64_t tile_count(const AttentionDims& dims, const Sequence& s) {
  const int64_t group = dims.H / dims.Hkv;
  if (shares_heads(dims, s)) return (group * s.Lq + kTileQ - 1) / kTileQ;
  return group * ((s.Lq + kTileQ - 1) / kTileQ);
}

void make_tile(const AttentionInputs<float>& in, const Sequence& s, int64_t kv, int64_t t, QueryTile& tile) {
  const int64_t group = in.dims.H / in.dims.Hkv;
  if (shares_heads(in.dims, s)) {
    tile.seq = s;
    tile.kv = kv;
    const int64_t first = t * kTileQ;
    tile.rows = static_cast<int>(std::min<int64_t>(kTileQ, group * s.Lq - first));
    for (int r = 0; r < tile.rows; ++r) {
      tile.head[r] = static_cast<int32_t>(kv * group + (first + r) / s.Lq);
      tile.query[r] = static_cast<int32_t>((first + r) % s.Lq);
    }
    tile.one_head = tile.head[0] == tile.head[tile.rows - 1];
    tile.same_ranges = tile.by_position = false;
    set_ranges(in, tile);
  } else {
    const int64_t per_head = (s.Lq + kTileQ - 1) / kTileQ;
    make_head_tile(in, s, kv * group + t / per_head, t % per_head * kTileQ, tile);
  }
}

void make_head_tile(const AttentionInputs<float>& in, const Sequence& s, int64_t head, int64_t first, QueryTile& tile) {
  const ScoreArgs<float>& rule = in.rule;
  const int rows = static_cast<int>(std::min<int64_t>(kTileQ, s.Lq - first));
  // Ranges by position alone are those of the tile made here before when lengths and place agree.
  const bool by_position = !rule.key_lens && !rule.mask.data && !rule.bias.data;
  tile.same_ranges = by_position && tile.by_position && tile.rows == rows && tile.query[0] == first &&
                     tile.seq.Lk == s.Lk && tile.seq.offset == s.offset;
  tile.seq = s;
  tile.kv = head / (in.dims.H / in.dims.Hkv);
  tile.rows = rows;
  tile.one_head = true;
  tile.by_position = by_position;
  std::fill(tile.head, tile.head + rows, static_cast<int32_t>(head));
  if (tile.same_ranges) return;
  for (int r = 0; r < rows; ++r) tile.query[r] = static_cast<int32_t>(first + r);
  set_ranges(in, tile);
}

TileList::TileList(const AttentionInputs<float>& in) : in_(in), max_keys_(in.dims.Lk) {
  if (!in.q_offsets) {
    per_sequence_ = in.dims.Hkv * tile_count(in.dims, sequence_of(in, 0));
    size_ = in.dims.B * per_sequence_;
    return;
  }
  starts_.reserve(static_cast<size_t>(in.dims.B) + 1);
  for (int64_t b = 0; b < in.dims.B; ++b) {
    starts_.push_back(size_);
    size_ += in.dims.Hkv * tile_count(in.dims, sequence_of(in, b));
  }
}

void TileList::get(int64_t index, QueryTile& tile) const {
  int64_t b = 0, first = 0;
  if (starts_.empty()) {
    b = index / per_sequence_;
    first = b * per_sequence_;
  } else {
    b = std::upper_bound(starts_.begin(), starts_.end(), index) - starts_.begin() - 1;
    first = starts_[static_cast<size_t>(b)];
  }
  const Sequence s = sequence_of(in_, b);
  const int64_t per_head = tile_count(in_.dims, s), within = index - first;
  // Later queries first: under the causal rule they are the longest tasks.
  make_tile(in_, s, within / per_head, per_head - 1 - within % per_head, tile);
}

}  // namespace qkv::kernels
