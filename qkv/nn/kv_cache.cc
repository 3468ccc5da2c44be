// The cache's memory, and attention to it.
#include "qkv/nn/kv_cache.h"

#include <algorithm>
#include <cstring>

#include "qkv/base/error.h"

namespace qkv {
namespace {

// Bytes of one token's heads in [N, Hkv, D].
size_t token_bytes(const Tensor& t) { return static_cast<size_t>(t.dim(1) * t.dim(2)) * size_of(t.dtype()); }

// The same numbers with each token's heads one after the other.
Tensor by_token(const Tensor& t) { return t.strides()[2] == 1 && t.strides()[1] == t.dim(2) ? t.detach() : t.clone(); }

char* token_of(Tensor t, int64_t i) {
  const auto at = static_cast<size_t>(i * t.strides()[0]) * size_of(t.dtype());
  return (t.dtype() == DType::f32 ? reinterpret_cast<char*>(t.f32()) : reinterpret_cast<char*>(t.f64())) + at;
}

}  // namespace

char* KvCache::room(int64_t row, int64_t at, size_t bytes) {
  if (row >= static_cast<int64_t>(rows_.size())) rows_.resize(static_cast<size_t>(row) + 1);
  Row& r = rows_[static_cast<size_t>(row)];
  const auto page = static_cast<size_t>(at / kPage), before = static_cast<size_t>(at % kPage) * bytes;
  const bool missing = page == r.pages.size();
  if (missing || r.pages[page].use_count() > 1) {
    auto own = std::make_shared<Storage>(static_cast<size_t>(kPage) * bytes);
    if (missing) {
      r.at.resize(page + 1);
      r.pages.resize(page + 1);
    } else {
      std::memcpy(own->data(), r.pages[page]->data(), before);
    }
    r.at[page] = static_cast<float*>(own->data());
    r.pages[page] = std::move(own);
  }
  return static_cast<char*>(r.pages[page]->data()) + before;
}

void KvCache::append(const Tensor& keys, const Tensor& values, const Ragged& fresh, std::span<const int64_t> lengths) {
  const Tensor k = by_token(keys), v = by_token(values);
  const size_t k_bytes = token_bytes(k), v_bytes = token_bytes(v);
  for (int64_t r = 0; r < fresh.sequences(); ++r) {
    for (int64_t i = 0; i < fresh.length(r); ++i) {
      char* to = room(r, lengths[static_cast<size_t>(r)] + i, k_bytes + v_bytes);
      std::memcpy(to, token_of(k, fresh.begin(r) + i), k_bytes);
      std::memcpy(to + k_bytes, token_of(v, fresh.begin(r) + i), v_bytes);
    }
  }
}

void KvCache::select(std::span<const int64_t> rows) {
  if (rows_.empty()) return;
  others_.resize(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) others_[i] = rows_[static_cast<size_t>(rows[i])];
  rows_.swap(others_);
  for (Row& old : others_) old.pages.clear();
}

KeysAndValues KvCache::copy(std::span<const int64_t> lengths, const KeysAndValues& like) const {
  const int64_t Hkv = like.keys.dim(1), D = like.keys.dim(2), Dv = like.values.dim(2), W = Hkv * (D + Dv);
  const size_t bytes = token_bytes(like.keys) + token_bytes(like.values);
  int64_t total = 0;
  for (int64_t n : lengths) total += n;
  const Tensor all = Tensor::empty({total, W}, like.keys.dtype());
  char* to = token_of(all, 0);
  for (size_t r = 0; r < lengths.size(); ++r) {
    for (int64_t left = lengths[r], page = 0; left > 0; left -= kPage, ++page) {
      const size_t some = static_cast<size_t>(std::min(left, kPage)) * bytes;
      std::memcpy(to, rows_[r].pages[static_cast<size_t>(page)]->data(), some);
      to += some;
    }
  }
  return {all.as_strided({total, Hkv, D}, {W, D, 1}, 0), all.as_strided({total, Hkv, Dv}, {W, Dv, 1}, Hkv * D)};
}

Tensor attend_cached(const Attention& mechanism, const Tensor& x, const AttentionCall& call,
                     std::span<const int64_t> lengths, KvCache& cache, Context& ctx) {
  const Ragged& fresh = call.queries;
  std::vector<int64_t> positions, total(lengths.begin(), lengths.end()), ends{0};
  bool first = true, single = true;
  for (int64_t r = 0; r < fresh.sequences(); ++r) {
    int64_t& length = total[static_cast<size_t>(r)];
    first = first && length == 0;
    single = single && fresh.length(r) == 1;
    for (int64_t i = 0; i < fresh.length(r); ++i) positions.push_back(length + i);
    ends.push_back(ends.back() + (length += fresh.length(r)));
  }
  if (!first && !single) throw ShapeError("[attend_cached] rows with a past take one token at a time");
  SelfParts parts = mechanism.project(x, positions, ctx);
  cache.append(parts.k, parts.v, fresh, lengths);
  if (call.bias.defined()) parts.rule.bias = call.bias;
  parts.rule.causal = first;
  parts.rule.q_offsets = fresh.offsets();
  parts.rule.k_offsets = ends;
  const KeysAndValues seen = first ? KeysAndValues{parts.k, parts.v} : cache.copy(total, {parts.k, parts.v});
  const Tensor a = attention(parts.q, seen.keys, seen.values, parts.rule);  // [N, H, Dv]
  const Tensor flat = reshape(a, {a.dim(0), a.dim(1) * a.dim(2)});
  return parts.output_weight.defined() ? linear(flat, parts.output_weight, parts.output_bias) : flat;
}

}  // namespace qkv
