// The cache's memory, and attention to it.
#include "qkv/nn/kv_cache.h"

#include <algorithm>
#include <cstring>

#include "qkv/base/error.h"
#include "qkv/base/parallel.h"

namespace qkv {
namespace {

char* bytes(Tensor t) {
  return t.dtype() == DType::f32 ? reinterpret_cast<char*>(t.f32()) : reinterpret_cast<char*>(t.f64());
}

// Bytes of one token in a cache or in a fresh [N, Hkv, D].
size_t token_bytes(const Tensor& t) { return static_cast<size_t>(t.dim(-1) * t.dim(-2)) * size_of(t.dtype()); }

// A cache of `rows` rows with room for `capacity` tokens, holding the first lengths[from[i]] tokens of row from[i].
Tensor moved(const Tensor& cache, int64_t capacity, std::span<const int64_t> from, std::span<const int64_t> lengths) {
  const auto rows = static_cast<int64_t>(from.size());
  const Tensor out = Tensor::empty({rows, capacity, cache.dim(2), cache.dim(3)}, cache.dtype());
  const size_t token = token_bytes(cache);
  parallel_for(rows, [&](int64_t i) {
    const int64_t r = from[static_cast<size_t>(i)];
    std::memcpy(bytes(out) + static_cast<size_t>(i * capacity) * token,
                bytes(cache) + static_cast<size_t>(r * cache.dim(1)) * token,
                static_cast<size_t>(lengths[static_cast<size_t>(r)]) * token);
  });
  return out;
}

void append_to(Tensor& cache, const Tensor& fresh_in, const Ragged& fresh, std::span<const int64_t> lengths) {
  const Tensor f =
      fresh_in.strides()[2] == 1 && fresh_in.strides()[1] == fresh_in.dim(2) ? fresh_in.detach() : fresh_in.clone();
  const int64_t rows = fresh.sequences();
  int64_t longest = 0;
  for (int64_t r = 0; r < rows; ++r) longest = std::max(longest, lengths[static_cast<size_t>(r)] + fresh.length(r));
  if (!cache.defined()) {
    cache = Tensor::empty({rows, std::max<int64_t>(16, longest), f.dim(1), f.dim(2)}, f.dtype());
  } else if (longest > cache.dim(1)) {
    std::vector<int64_t> all(static_cast<size_t>(rows));
    for (int64_t r = 0; r < rows; ++r) all[static_cast<size_t>(r)] = r;
    cache = moved(cache, std::max(longest, 2 * cache.dim(1)), all, lengths);
  }
  const size_t token = token_bytes(cache), stride = static_cast<size_t>(f.strides()[0]) * size_of(f.dtype());
  for (int64_t r = 0; r < rows; ++r) {
    char* to = bytes(cache) + static_cast<size_t>(r * cache.dim(1) + lengths[static_cast<size_t>(r)]) * token;
    for (int64_t i = fresh.begin(r); i < fresh.begin(r + 1); ++i, to += token) {
      std::memcpy(to, bytes(f) + static_cast<size_t>(i) * stride, token);
    }
  }
}

}  // namespace

void KvCache::append(const Tensor& keys, const Tensor& values, const Ragged& fresh, std::span<const int64_t> lengths) {
  append_to(keys_, keys, fresh, lengths);
  append_to(values_, values, fresh, lengths);
}

void KvCache::select(std::span<const int64_t> rows, std::span<const int64_t> lengths) {
  if (!keys_.defined()) return;
  keys_ = moved(keys_, keys_.dim(1), rows, lengths);
  values_ = moved(values_, values_.dim(1), rows, lengths);
}

Tensor KvCache::view(const Tensor& cache, int64_t longest) {
  const int64_t capacity = cache.dim(1), Hkv = cache.dim(2), D = cache.dim(3);
  return cache.as_strided({cache.dim(0), Hkv, longest, D}, {capacity * Hkv * D, D, Hkv * D, 1}, cache.storage_offset());
}

Tensor attend_cached(const Attention& mechanism, const Tensor& x, const AttentionCall& call,
                     std::span<const int64_t> lengths, KvCache& cache, Context& ctx) {
  const Ragged& fresh = call.queries;
  std::vector<int64_t> positions, total(lengths.begin(), lengths.end());
  bool first = true, single = true;
  int64_t longest = 0;
  for (int64_t r = 0; r < fresh.sequences(); ++r) {
    int64_t& length = total[static_cast<size_t>(r)];
    first = first && length == 0;
    single = single && fresh.length(r) == 1;
    for (int64_t i = 0; i < fresh.length(r); ++i) positions.push_back(length + i);
    longest = std::max(longest, length += fresh.length(r));
  }
  if (!first && !single) throw ShapeError("[attend_cached] rows with a past take one token at a time");
  SelfParts parts = mechanism.project(x, positions, ctx);
  cache.append(parts.k, parts.v, fresh, lengths);
  if (call.bias.defined()) parts.rule.bias = call.bias;
  const int64_t N = x.dim(0), H = parts.q.dim(1), D = parts.q.dim(2);
  Tensor a;
  if (first) {
    parts.rule.causal = true;
    parts.rule.q_offsets = parts.rule.k_offsets = fresh.offsets();
    a = attention(parts.q, parts.k, parts.v, parts.rule);  // [N, H, Dv]
  } else {
    const Shape& s = parts.q.strides();
    const Tensor q = parts.q.as_strided({N, H, 1, D}, {s[0], s[1], D, s[2]}, parts.q.storage_offset());
    parts.rule.key_lens = total;
    a = attention(q, cache.keys(longest), cache.values(longest), parts.rule);  // [N, H, 1, Dv]
  }
  const Tensor flat = reshape(a, {N, a.numel() / std::max<int64_t>(1, N)});
  return parts.output_weight.defined() ? linear(flat, parts.output_weight, parts.output_bias) : flat;
}

}  // namespace qkv
