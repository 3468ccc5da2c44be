// Keys and values of tokens already read, so that each new token costs one step.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "qkv/core/memory.h"
#include "qkv/nn/attention.h"

namespace qkv {

/// The keys and values of one layer, row by row, in pages: the cache grows by a page at a time and copies nothing. A
/// token is its keys [Hkv, D] and then its values [Hkv, Dv]. Rows that continue one beginning share its pages until
/// they write. The caller knows which part is in use: one length per row, the same for all layers.
class KvCache {
 public:
  static constexpr int64_t kPage = 32;  ///< tokens of a page

  /// Makes room for token `at` of a row, the one after those it has, and says where: `bytes` of memory.
  char* room(int64_t row, int64_t at, size_t bytes);
  /// Writes the fresh tokens' keys and values [N, Hkv, D] after the rows' first lengths[r] tokens.
  void append(const Tensor& keys, const Tensor& values, const Ragged& fresh, std::span<const int64_t> lengths);
  /// Keeps rows[i] as row i.
  void select(std::span<const int64_t> rows);
  /// The pages of a row whose tokens are floats.
  float* const* pages(int64_t row) const { return rows_[static_cast<size_t>(row)].at.data(); }
  /// A copy of the rows' first lengths[r] tokens one after the other; `like` says what a token is.
  KeysAndValues copy(std::span<const int64_t> lengths, const KeysAndValues& like) const;

 private:
  struct Row {
    std::vector<std::shared_ptr<Storage>> pages;
    std::vector<float*> at;  // where they are
  };
  std::vector<Row> rows_, others_;  // others_: room to select into
};

/// Self-attention of fresh tokens x [N, C] of each row to the tokens before them and to themselves, causal. `lengths`
/// are the tokens each row has in the cache. Either all rows are new (lengths 0, any number of tokens), or each brings
/// exactly one token. call.queries are the fresh tokens; call.bias is for the whole length. Throws ShapeError.
Tensor attend_cached(const Attention& attention, const Tensor& x, const AttentionCall& call,
                     std::span<const int64_t> lengths, KvCache& cache, Context& ctx);

}  // namespace qkv
