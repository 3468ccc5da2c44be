// Attention on padded batches.
#include "qkv/nn/padded.h"

#include <cmath>

#include "qkv/base/error.h"
#include "qkv/nn/positions.h"

namespace qkv::padded {
namespace {

ScoreRule rule_for(std::span<const int64_t> lens) {
  ScoreRule rule;
  rule.key_lens.assign(lens.begin(), lens.end());
  return rule;
}

// [B, L, H·D] as [B, H, L, D], a view.
Tensor heads_of(const Tensor& x, int64_t heads) {
  return transpose(reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), 1, 2);
}

}  // namespace

Tensor dot_product_attention(const Tensor& queries, const Tensor& keys, const Tensor& values,
                             std::span<const int64_t> lens) {
  return attention(queries, keys, values, rule_for(lens));
}

AdditiveAttention::AdditiveAttention(int64_t query, int64_t key, int64_t hidden, Rng& rng)
    : query_(query, hidden, rng, false), key_(key, hidden, rng, false) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(hidden));
  score_ = parameter(Tensor::uniform({hidden}, rng, -bound, bound));
}

Tensor AdditiveAttention::forward(const Tensor& queries, const Tensor& keys, const Tensor& values,
                                  std::span<const int64_t> lens) const {
  ScoreRule rule = rule_for(lens);
  rule.additive = score_;
  return attention(query_.forward(queries), key_.forward(keys), values, rule);
}

void AdditiveAttention::visit(Visitor& see) {
  see("query", query_);
  see("key", key_);
  see("score", score_);
}

Tensor transpose_qkv(const Tensor& x, int64_t heads) {
  if (x.rank() != 3 || heads < 1 || x.dim(2) % heads != 0) {
    throw ShapeError("[transpose_qkv] x=" + x.shape().str() + " does not divide into " + std::to_string(heads) +
                     " heads");
  }
  return reshape(contiguous(heads_of(x, heads)), {x.dim(0) * heads, x.dim(1), x.dim(2) / heads});
}

Tensor transpose_output(const Tensor& x, int64_t heads) {
  if (x.rank() != 3 || heads < 1 || x.dim(0) % heads != 0) {
    throw ShapeError("[transpose_output] x=" + x.shape().str() + " does not divide into " + std::to_string(heads) +
                     " heads");
  }
  const int64_t B = x.dim(0) / heads, L = x.dim(1), D = x.dim(2);
  return reshape(contiguous(transpose(reshape(x, {B, heads, L, D}), 1, 2)), {B, L, heads * D});
}

MultiHeadAttention::MultiHeadAttention(int64_t width, int64_t heads, Rng& rng, double dropout)
    : heads_(heads),
      dropout_(dropout),
      query_(width, width, rng, false),
      key_(width, width, rng, false),
      value_(width, width, rng, false),
      output_(width, width, rng, false) {
  if (heads < 1 || width % heads != 0) {
    throw ConfigError("attention: width " + std::to_string(width) + " does not divide into " + std::to_string(heads) +
                      " heads");
  }
}

Tensor MultiHeadAttention::forward(const Tensor& queries, const Tensor& keys, const Tensor& values,
                                   std::span<const int64_t> lens, Context& ctx) const {
  ScoreRule rule = rule_for(lens);
  if (ctx.training() && dropout_ > 0) {
    rule.dropout = dropout_;
    rule.dropout_seed = ctx.next_seed();
  }
  const Tensor a = attention(heads_of(query_.forward(queries), heads_), heads_of(key_.forward(keys), heads_),
                             heads_of(value_.forward(values), heads_), rule);  // [B, H, Lq, D]
  return output_.forward(transpose_output(reshape(a, {a.dim(0) * a.dim(1), a.dim(2), a.dim(3)}), heads_));
}

void MultiHeadAttention::visit(Visitor& see) {
  see("query", query_);
  see("key", key_);
  see("value", value_);
  see("output", output_);
}

PositionalEncoding::PositionalEncoding(int64_t width, int64_t longest, double dropout)
    : table_(sinusoidal_positions(longest, width)), dropout_(dropout) {}

Tensor PositionalEncoding::forward(const Tensor& x, Context& ctx) const {
  if (x.rank() != 3 || x.dim(1) > table_.dim(0) || x.dim(2) != table_.dim(1)) {
    throw ShapeError("[positional_encoding] x=" + x.shape().str() + " for a table of " + table_.shape().str());
  }
  return dropout_.forward(add(x, slice(table_, 0, 0, x.dim(1))), ctx);
}

}  // namespace qkv::padded
