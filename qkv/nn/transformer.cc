// The Transformer stack: one walk over the layers serves whole sequences and single steps.
#include "qkv/nn/transformer.h"

#include <algorithm>

#include "qkv/base/error.h"
#include "qkv/nn/positions.h"

namespace qkv {
namespace {

AttentionConfig attention_config(const StackConfig& config, bool self) {
  AttentionConfig a;
  a.query = a.memory = config.width;
  a.heads = config.heads;
  a.kv_heads = config.kv_heads;
  a.self = self;
  if (self) a.positions = config.positions;
  a.block = config.block;
  a.dropout = config.dropout;
  a.normaliser = config.normaliser;
  return a;
}

// The biases of all pairs of `longest` tokens, [H, L, L]; undefined when the positions have none.
Tensor bias_of_all(const StackConfig& config, int64_t longest) {
  const auto bias = row_of(config.positions).bias;
  return bias ? bias(config.heads, longest, longest, 0) : Tensor();
}

// The biases of the one new token of each row and the keys before it, [R, H, 1, Lk].
Tensor bias_of_step(const StackConfig& config, std::span<const int64_t> lengths) {
  const auto bias = row_of(config.positions).bias;
  if (!bias) return {};
  const int64_t longest = lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end()) + 1;
  std::vector<Tensor> rows;
  for (int64_t length : lengths) {
    rows.push_back(reshape(bias(config.heads, 1, longest, length), {1, config.heads, 1, longest}));
  }
  return concat(rows, 0);
}

}  // namespace

TransformerLayer::TransformerLayer(const StackConfig& config, Rng& rng)
    : self(config.self_attention.make(attention_config(config, true), rng)),
      feed_forward(config.width, config.inner, config.act, config.inner_dropout, rng),
      self_norm(config.width),
      feed_norm(config.width) {
  const auto check_width = [&](const Attention& made, const Mechanism& mechanism) {
    if (made.width() == config.width) return;
    throw ConfigError("attention '" + mechanism.name() + "' gives no context of the model's width");
  };
  check_width(*self, config.self_attention);
  if (row_of(config.positions).in_attention() && !self->takes_positions()) {
    throw ConfigError(std::string("positions '") + name_of(config.positions) + "' need attention 'multi-head', not '" +
                      config.self_attention.name() + "'");
  }
  if (!config.cross) return;
  cross = config.cross_attention.make(attention_config(config, false), rng);
  cross_norm = LayerNorm(config.width);
  check_width(*cross, config.cross_attention);
}

void TransformerLayer::visit(Visitor& see) {
  see("self", self);
  see("self_norm", self_norm);
  if (cross) {
    see("cross", cross);
    see("cross_norm", cross_norm);
  }
  see("feed_forward", feed_forward);
  see("feed_norm", feed_norm);
}

void StackCache::select(std::span<const int64_t> rows) {
  for (KvCache& layer : layers) layer.select(rows);
  std::vector<int64_t> kept;
  for (int64_t r : rows) kept.push_back(lengths[static_cast<size_t>(r)]);
  lengths = std::move(kept);
}

TransformerStack::TransformerStack(const StackConfig& config, Rng& rng) : config_(config) {
  check_size("[transformer] layers", config.layers);
  check_size("[transformer] heads", config.heads);
  if (!(config.dropout >= 0 && config.dropout < 1)) throw ConfigError("[transformer] dropout must be in [0, 1)");
  for (int64_t l = 0; l < config.layers; ++l) layers_.emplace_back(config, rng);
  if (config.final_norm) final_norm_ = LayerNorm(config.width);
}

void TransformerStack::visit(Visitor& see) {
  see("layers", layers_);
  if (config_.final_norm) see("norm", final_norm_);
}

// self(layer, x) and cross(layer, x) are the attention of one layer; everything around them is here. Where rows are
// `wanted` (pre-norm only), self() of the last layer gives those alone.
template <class SelfFn, class CrossFn>
Tensor TransformerStack::run(Tensor x, Context& ctx, const SelfFn& self, const CrossFn& cross,
                             std::span<const int64_t> wanted) const {
  const double p = ctx.training() ? config_.dropout : 0;
  // x + dropout(f) is passed on as the residual and, normalised, to the next sublayer.
  const auto join = [&](const Tensor& f, const Tensor& residual, const LayerNorm* norm) -> SumAndNorm {
    if (!norm) return {dropout_add(f, residual, p, p > 0 ? ctx.next_seed() : 0), Tensor()};
    if (p == 0) return norm->forward_sum(f, residual);
    const Tensor sum = dropout_add(f, residual, p, ctx.next_seed());
    return {sum, norm->forward(sum)};
  };
  const auto last_norm = [&]() { return config_.final_norm ? &final_norm_ : nullptr; };
  if (config_.pre_norm) {
    SumAndNorm h{x, layers_[0].self_norm.forward(x)};
    for (size_t l = 0; l < layers_.size(); ++l) {
      const TransformerLayer& layer = layers_[l];
      const Tensor attended = self(l, h.norm);
      if (l + 1 == layers_.size() && !wanted.empty()) h.sum = gather_rows(h.sum, wanted);
      h = join(attended, h.sum, layer.cross ? &layer.cross_norm : &layer.feed_norm);
      if (layer.cross) h = join(cross(l, h.norm), h.sum, &layer.feed_norm);
      const Tensor f = layer.feed_forward.forward(h.norm, ctx);
      h = join(f, h.sum, l + 1 < layers_.size() ? &layers_[l + 1].self_norm : last_norm());
    }
    return config_.final_norm ? h.norm : h.sum;
  }
  for (size_t l = 0; l < layers_.size(); ++l) {
    const TransformerLayer& layer = layers_[l];
    x = join(self(l, x), x, &layer.self_norm).norm;
    if (layer.cross) x = join(cross(l, x), x, &layer.cross_norm).norm;
    x = join(layer.feed_forward.forward(x, ctx), x, &layer.feed_norm).norm;
  }
  return config_.final_norm ? final_norm_.forward(x) : x;
}

Tensor TransformerStack::forward(const Tensor& x, const Ragged& batch, const std::string& site, Context& ctx,
                                 const MemoryPlans& memory) const {
  if (config_.cross && memory.size() != layers_.size()) throw ShapeError("[transformer] a decoder needs a memory");
  AttentionCall own, other;
  own.queries = own.memory = other.queries = batch;
  own.causal = config_.causal;
  own.site = site;
  if (const Tensor bias = bias_of_all(config_, batch.longest()); bias.defined()) own.bias = bias.to(x.dtype());
  return run(
      x, ctx,
      [&](size_t l, const Tensor& h) {
        own.layer = static_cast<int>(l);
        return layers_[l].self->forward(h, h, own, ctx);
      },
      [&](size_t l, const Tensor& h) {
        other.layer = static_cast<int>(l);
        other.memory = memory[l].memory;
        return attend(h, memory[l], other, ctx);
      });
}

Tensor TransformerStack::forward_one(const Tensor& x, const Ragged& batch, std::span<const int64_t> wanted,
                                     const std::string& site, Context& ctx) const {
  const bool plain = config_.pre_norm && !config_.cross && !config_.causal && !row_of(config_.positions).in_attention();
  // A trace shows every row.
  if (!plain || ctx.trace != nullptr || layers_.back().self->goes_by_place()) {
    return gather_rows(forward(x, batch, site, ctx), wanted);
  }
  AttentionCall all, last;
  all.queries = all.memory = last.memory = batch;
  last.queries = Ragged::equal(batch.sequences(), 1);
  all.site = last.site = site;
  const auto self = [&](size_t l, const Tensor& h) {
    const Attention& attention = *layers_[l].self;
    all.layer = last.layer = static_cast<int>(l);
    if (l + 1 < layers_.size()) return attention.forward(h, h, all, ctx);
    return attend(gather_rows(h, wanted), attention.plan(h, batch, ctx), last, ctx);
  };
  return run(
      x, ctx, self, [](size_t, const Tensor& h) { return h; }, wanted);
}

MemoryPlans TransformerStack::plan_memory(const Tensor& memory, const Ragged& batch, Context& ctx) const {
  MemoryPlans plans;
  for (const TransformerLayer& layer : layers_) {
    if (layer.cross) plans.push_back(layer.cross->plan(memory, batch, ctx));
  }
  return plans;
}

StackCache TransformerStack::start(int64_t rows) const {
  return {std::vector<KvCache>(layers_.size()), std::vector<int64_t>(static_cast<size_t>(rows), 0)};
}

Tensor TransformerStack::extend(const Tensor& x, const Ragged& fresh, StackCache& cache, Context& ctx,
                                const MemoryPlans& memory, const Ragged& queries) const {
  if (!config_.causal) throw ConfigError("[transformer] only a causal stack reads token by token");
  AttentionCall own, other;
  own.queries = own.memory = fresh;
  other.queries = queries;
  const bool first = std::all_of(cache.lengths.begin(), cache.lengths.end(), [](int64_t n) { return n == 0; });
  own.bias = first ? bias_of_all(config_, fresh.longest()) : bias_of_step(config_, cache.lengths);
  const Tensor out = run(
      x, ctx,
      [&](size_t l, const Tensor& h) {
        return attend_cached(*layers_[l].self, h, own, cache.lengths, cache.layers[l], ctx);
      },
      [&](size_t l, const Tensor& h) {
        other.memory = memory[l].memory;
        return attend(h, memory[l], other, ctx);
      });
  for (int64_t r = 0; r < fresh.sequences(); ++r) cache.lengths[static_cast<size_t>(r)] += fresh.length(r);
  return out;
}

}  // namespace qkv
