// Attention on padded batches.
#include "qkv/nn/padded.h"

#include <cmath>

#include "qkv/base/error.h"
#include "qkv/core/autograd.h"
#include "qkv/nn/positions.h"
#include "qkv/ops/recurrent_decoder.h"

namespace qkv::padded {
namespace {

ScoreRule rule_for(Lengths lens) {
  ScoreRule rule;
  rule.key_lens.assign(lens.begin(), lens.end());
  return rule;
}

void drop(ScoreRule& rule, const Dropout& dropout, Context& ctx) {
  if (!ctx.training() || dropout.p() == 0) return;
  rule.dropout = dropout.p();
  rule.dropout_seed = ctx.next_seed();
}

// Weights of one head without its axis: [B, Lq, Lk].
Tensor single_head(const Tensor& weights) {
  return reshape(weights, {weights.dim(0), weights.dim(-2), weights.dim(-1)});
}

// [B, L, H·D] as [B, H, L, D], a view.
Tensor heads_of(const Tensor& x, int64_t heads) {
  return transpose(reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), 1, 2);
}

}  // namespace

Tensor DotProductAttention::forward(const Tensor& queries, const Tensor& keys, const Tensor& values, Lengths lens,
                                    Context& ctx) const {
  ScoreRule rule = rule_for(lens);
  drop(rule, dropout_, ctx);
  return attention(queries, keys, values, rule);
}

Tensor DotProductAttention::weights(const Tensor& queries, const Tensor& keys, Lengths lens) const {
  return single_head(attention_score_array(queries, keys, rule_for(lens)));
}

AdditiveAttention::AdditiveAttention(int64_t query, int64_t key, int64_t hidden, Rng& rng, double dropout)
    : query_(query, hidden, rng, false), key_(key, hidden, rng, false), dropout_(dropout) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(hidden));
  score_ = parameter(Tensor::uniform({hidden}, rng, -bound, bound));
}

Tensor AdditiveAttention::forward(const Tensor& queries, const Tensor& keys, const Tensor& values, Lengths lens,
                                  Context& ctx) const {
  ScoreRule rule = rule_for(lens);
  rule.additive = score_;
  drop(rule, dropout_, ctx);
  return attention(query_.forward(queries), key_.forward(keys), values, rule);
}

Tensor AdditiveAttention::weights(const Tensor& queries, const Tensor& keys, Lengths lens) const {
  ScoreRule rule = rule_for(lens);
  rule.additive = score_;
  return single_head(attention_score_array(query_.forward(queries), key_.forward(keys), rule));
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

Tensor MultiHeadAttention::forward(const Tensor& queries, const Tensor& keys, const Tensor& values, Lengths lens,
                                   Context& ctx) const {
  ScoreRule rule = rule_for(lens);
  drop(rule, dropout_, ctx);
  const Tensor a = attention(heads_of(query_.forward(queries), heads_), heads_of(key_.forward(keys), heads_),
                             heads_of(value_.forward(values), heads_), rule);  // [B, H, Lq, D]
  return output_.forward(transpose_output(reshape(a, {a.dim(0) * a.dim(1), a.dim(2), a.dim(3)}), heads_));
}

Tensor MultiHeadAttention::weights(const Tensor& queries, const Tensor& keys, Lengths lens) const {
  return attention_score_array(heads_of(query_.forward(queries), heads_), heads_of(key_.forward(keys), heads_),
                               rule_for(lens));
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

Seq2SeqAttentionDecoder::Seq2SeqAttentionDecoder(const DecoderSizes& sizes, Rng& rng)
    : sizes_(sizes),
      embedding_(sizes.vocabulary, sizes.embedding, rng),
      attention_(sizes.hidden, sizes.hidden, sizes.hidden, rng) {
  check_size("[attention decoder] layers", sizes.layers);
  for (int64_t l = 0; l < sizes.layers; ++l) {
    const int64_t input = l == 0 ? sizes.embedding + sizes.hidden : sizes.hidden;
    cells_.push_back(recurrent_weights(CellKind::gru, input, sizes.hidden, rng));
  }
  output_ = Linear(sizes.hidden, sizes.vocabulary, rng);
}

void Seq2SeqAttentionDecoder::visit(Visitor& see) {
  see("embedding", embedding_);
  see("attention", attention_);
  for (size_t l = 0; l < cells_.size(); ++l) visit_weights(see, "cell.", "_l" + std::to_string(l), cells_[l]);
  see("output", output_);
}

// The valid rows of the source, packed, as keys and values.
AttentionPlan Seq2SeqAttentionDecoder::plan(const State& state) const {
  const int64_t B = state.encoder_outputs.dim(0), Ls = state.encoder_outputs.dim(1), H = sizes_.hidden;
  std::vector<int64_t> lens = state.lens, rows;
  if (lens.empty()) lens.assign(static_cast<size_t>(B), Ls);
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t i = 0; i < lens[static_cast<size_t>(b)]; ++i) rows.push_back(b * Ls + i);
  }
  const Tensor source = gather_rows(reshape(state.encoder_outputs, {B * Ls, H}), rows);  // [T, H]
  AttentionPlan plan;
  plan.memory = Ragged(lens);
  plan.keys = reshape(attention_.key_.forward(source), {source.dim(0), 1, H});
  plan.values = reshape(source, {source.dim(0), 1, H});
  plan.query_weight = attention_.query_.weight();
  plan.rule.additive = attention_.score_;
  return plan;
}

Seq2SeqAttentionDecoder::Decoded Seq2SeqAttentionDecoder::forward(std::span<const int64_t> tokens, const State& state,
                                                                  Context& ctx) const {
  const int64_t H = sizes_.hidden, layers = sizes_.layers;
  const int64_t B = state.encoder_outputs.rank() == 3 ? state.encoder_outputs.dim(0) : 0;
  const bool fits = B > 0 && state.encoder_outputs.dim(2) == H && state.hidden.shape() == Shape{layers, B, H} &&
                    (state.lens.empty() || static_cast<int64_t>(state.lens.size()) == B);
  const auto count = static_cast<int64_t>(tokens.size());
  if (!fits || count == 0 || count % B != 0) {
    throw ShapeError("[attention decoder] " + std::to_string(count) + " tokens, encoder outputs " +
                     state.encoder_outputs.shape().str() + " and hidden states " + state.hidden.shape().str() +
                     "; expected B·T tokens, [B,L," + std::to_string(H) + "] and [" + std::to_string(layers) + ",B," +
                     std::to_string(H) + "]");
  }
  std::vector<RecurrentState> initial;
  for (int64_t l = 0; l < layers; ++l) initial.push_back({reshape(slice(state.hidden, 0, l, l + 1), {B, H}), Tensor()});
  const double p = ctx.training() ? sizes_.dropout : 0;
  const DecoderCells cells{CellKind::gru, cells_, p, p > 0 ? ctx.next_seed() : 0};
  const Ragged steps = Ragged::equal(B, count / B);
  const DecoderResult run = recurrent_decoder(embedding_.forward(tokens), steps, cells, plan(state), initial);

  Decoded out;
  out.logits = reshape(output_.forward(run.out), {B, count / B, sizes_.vocabulary});
  std::vector<Tensor> hidden;
  for (const RecurrentState& s : run.state) hidden.push_back(reshape(s.h, {1, B, H}));
  out.state = {state.encoder_outputs, concat(hidden, 0), state.lens};
  ScoreRule rule = rule_for(state.lens);
  rule.additive = attention_.score_.detach();
  const NoGrad no_grad;
  out.weights = single_head(attention_score_array(reshape(run.queries, {B, count / B, H}),
                                                  attention_.key_.forward(state.encoder_outputs), rule));
  return out;
}

}  // namespace qkv::padded
