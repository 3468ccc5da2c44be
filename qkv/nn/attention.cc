// The table of attention mechanisms, and what they share.
#include "qkv/nn/attention.h"

#include <array>

#include "qkv/base/error.h"
#include "qkv/nn/attention/mechanism.h"

namespace qkv {

// Each is at the end of its mechanism's file in attention/.
using MakeAttention = std::unique_ptr<Attention>(const AttentionConfig&, Rng&);
MakeAttention make_none, make_mean, make_dot, make_scaled_dot, make_general, make_additive, make_multi_head,
    make_synthesizer;

namespace {

constexpr std::array kTable{
    AttentionSpec{"none", "no context at all", true, false, make_none},
    AttentionSpec{"mean", "the mean of the memory", true, true, make_mean},
    AttentionSpec{"dot", "softmax(q·k) on the states themselves", true, true, make_dot},
    AttentionSpec{"scaled-dot", "softmax(q·k/√d) with projected queries, keys and values", true, true, make_scaled_dot},
    AttentionSpec{"general", "softmax(qᵀ W k)", true, true, make_general},
    AttentionSpec{"additive", "softmax(wᵀ tanh(W_q q + W_k k))", true, true, make_additive},
    AttentionSpec{"multi-head", "several scaled dot products side by side, grouped queries on request", true, true,
                  make_multi_head},
    AttentionSpec{"synthesizer", "softmax(relu(x A + a) B + b): weights from the token itself", false, true,
                  make_synthesizer},
};

}  // namespace

std::span<const AttentionSpec> attention_table() { return kTable; }

std::vector<std::string> attention_names(bool self) {
  std::vector<std::string> names;
  for (const AttentionSpec& row : kTable) {
    if (self ? row.in_self : row.in_cross) names.emplace_back(row.name);
  }
  return names;
}

const AttentionSpec& find_attention(const std::string& name) {
  std::vector<std::string> known;
  for (const AttentionSpec& row : kTable) {
    if (name == row.name) return row;
    known.emplace_back(row.name);
  }
  throw ConfigError("no attention mechanism '" + name + "'" + did_you_mean(name, known) +
                    "; available: " + listed(known));
}

std::unique_ptr<Attention> Mechanism::make(const AttentionConfig& config, Rng& rng) const {
  if (make_) {
    std::unique_ptr<Attention> own = make_(config, rng);
    if (!own) throw ConfigError("attention '" + name_ + "': its factory made nothing");
    return own;
  }
  const AttentionSpec& row = find_attention(name_);
  if (config.self ? !row.in_self : !row.in_cross) {
    throw ConfigError("attention '" + name_ + "' cannot be used as " + (config.self ? "self" : "cross") + "-attention");
  }
  return row.make(config, rng);
}

Tensor Attention::forward(const Tensor& query, const Tensor& memory, const AttentionCall& call, Context& ctx) const {
  return attend(query, plan(memory, call.memory, ctx), call, ctx);
}

SelfParts Attention::project(const Tensor& x, std::span<const int64_t>, Context& ctx) const {
  const AttentionPlan made = plan(x, Ragged{x.dim(0)}, ctx);
  if (!made.defined()) throw ConfigError("attention: a mechanism without keys cannot be self-attention");
  return {project_queries(x, made), made.keys, made.values, made.rule, made.output_weight, made.output_bias};
}

Tensor attend(const Tensor& query, const AttentionPlan& plan, const AttentionCall& call, Context& ctx) {
  if (!plan.defined()) return Tensor::empty({query.dim(0), 0}, query.dtype());
  ScoreRule rule = plan.rule;
  rule.causal = call.causal;
  if (call.bias.defined()) rule.bias = call.bias;
  const Tensor q = project_queries(query, plan);
  trace_attention(q, {plan.keys, plan.values}, rule, call, ctx);
  return context_of(q, call.queries, plan, rule);
}

}  // namespace qkv
