// Keys and values of tokens already read, so that each new token costs one step.
#pragma once

#include <span>
#include <vector>

#include "qkv/nn/attention.h"

namespace qkv {

/// The keys and values of one layer, [rows, capacity, Hkv, D]; it grows as needed. The caller
/// knows which part is in use: one length per row, the same for all layers.
class KvCache {
 public:
  /// Writes the fresh tokens' keys and values [N, Hkv, D] after the rows' first lengths[r] tokens.
  void append(const Tensor& keys, const Tensor& values, const Ragged& fresh, std::span<const int64_t> lengths);
  /// Keeps rows[i] as row i; `lengths` are those before.
  void select(std::span<const int64_t> rows, std::span<const int64_t> lengths);
  /// The first `longest` tokens as attention takes them, views [rows, Hkv, longest, D].
  Tensor keys(int64_t longest) const { return view(keys_, longest); }
  /// The same of the values.
  Tensor values(int64_t longest) const { return view(values_, longest); }

 private:
  static Tensor view(const Tensor& cache, int64_t longest);
  Tensor keys_, values_;
};

/// Self-attention of fresh tokens x [N, C] of each row to the tokens before them and to themselves, causal. `lengths`
/// are the tokens each row has in the cache. Either all rows are new (lengths 0, any number of tokens), or each brings
/// exactly one token. call.queries are the fresh tokens; call.bias is for the whole length. Throws ShapeError.
Tensor attend_cached(const Attention& attention, const Tensor& x, const AttentionCall& call,
                     std::span<const int64_t> lengths, KvCache& cache, Context& ctx);

}  // namespace qkv
