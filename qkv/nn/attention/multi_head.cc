// Multi-head attention, grouped queries included.
#include "qkv/base/error.h"
#include "qkv/nn/attention/mechanism.h"
#include "qkv/ops/heads.h"

namespace qkv {
namespace {

/// Heads of q·k/√D side by side: W_o [head_1; …; head_H] + b_o. With kv_heads < heads, groups of query heads share
/// keys and values. In self-attention one product gives q, k and v; positions may turn q and k.
class MultiHeadAttention final : public Attention {
 public:
  MultiHeadAttention(const AttentionConfig& config, Rng& rng);
  void visit(Visitor& see) override;
  int64_t width() const override { return output_.weight().dim(0); }
  AttentionPlan plan(const Tensor& memory, const Ragged& batch, Context& ctx) const override;
  Tensor forward(const Tensor& query, const Tensor& memory, const AttentionCall& call, Context& ctx) const override;
  SelfParts project(const Tensor& x, std::span<const int64_t> positions, Context& ctx) const override;
  std::optional<JointParts> joint_parts() const override {
    if (!config_.self || config_.normaliser != Normaliser::softmax) return std::nullopt;
    return JointParts{
        joint_.weight(),   joint_.bias(), output_.weight(), output_.bias(), config_.heads, config_.kv_heads, D_, Dv_,
        config_.positions, config_.scale};
  }
  bool takes_positions() const override { return true; }

 private:
  AttentionConfig config_;
  decltype(PositionsRow::turned) turned_;  // null: positions do nothing here
  int64_t D_ = 0, Dv_ = 0;
  Linear query_;      // [H·D, C]; cross-attention only
  Linear key_value_;  // [Hkv·(D+Dv), M]; cross-attention only
  Linear joint_;      // [H·D + Hkv·(D+Dv), C]; self-attention only: q, k, v
  Linear output_;
};

int64_t head_width(const char* what, int64_t total, int64_t heads) {
  check_size("attention heads", heads);
  if (total < 1 || total % heads != 0) {
    throw ConfigError(std::string("attention: ") + what + " width " + std::to_string(total) + " does not divide into " +
                      std::to_string(heads) + " heads");
  }
  return total / heads;
}

MultiHeadAttention::MultiHeadAttention(const AttentionConfig& config, Rng& rng)
    : config_(config), turned_(row_of(config.positions).turned) {
  if (config_.kv_heads == 0) config_.kv_heads = config_.heads;
  const int64_t H = config_.heads, Hkv = config_.kv_heads, C = config_.query;
  D_ = head_width("key", config_.key > 0 ? config_.key : C, H);
  Dv_ = head_width("value", config_.value > 0 ? config_.value : C, H);
  if (Hkv < 1 || H % Hkv != 0) {
    throw ConfigError("attention: " + std::to_string(H) + " heads cannot share " + std::to_string(Hkv) +
                      " key heads; one must divide the other");
  }
  if (config_.self) {
    if (config_.memory != 0 && config_.memory != C) throw ConfigError("attention: self-attention has one width");
    joint_ = Linear(C, H * D_ + Hkv * (D_ + Dv_), rng, config_.bias);
  } else {
    if (turned_) {
      throw ConfigError(std::string("attention: positions '") + name_of(config_.positions) +
                        "' belong to self-attention");
    }
    query_ = Linear(C, H * D_, rng, config_.bias);
    key_value_ = Linear(config_.memory, Hkv * (D_ + Dv_), rng, config_.bias);
  }
  output_ = Linear(H * Dv_, C, rng, config_.bias);
}

void MultiHeadAttention::visit(Visitor& see) {
  if (config_.self) {
    see("qkv", joint_);
  } else {
    see("query", query_);
    see("key_value", key_value_);
  }
  see("output", output_);
}

AttentionPlan MultiHeadAttention::plan(const Tensor& memory, const Ragged& batch, Context& ctx) const {
  if (turned_) {
    throw ConfigError(std::string("attention: positions '") + name_of(config_.positions) +
                      "' have no plan, they need those of the queries");
  }
  const int64_t H = config_.heads, Hkv = config_.kv_heads, widths[] = {Hkv * D_, Hkv * Dv_};
  AttentionPlan plan;
  Tensor key_value;  // [Tk, Hkv·(D + Dv)]
  if (config_.self) {
    const int64_t all = joint_.weight().dim(0);
    const auto bias = [&](int64_t from, int64_t to) {
      return config_.bias ? slice(joint_.bias(), 0, from, to) : Tensor();
    };
    plan.query_weight = slice(joint_.weight(), 0, 0, H * D_);
    plan.query_bias = bias(0, H * D_);
    key_value = linear(memory, slice(joint_.weight(), 0, H * D_, all), bias(H * D_, all));
  } else {
    key_value = key_value_.forward(memory);
    plan.query_weight = query_.weight();
    plan.query_bias = query_.bias();
  }
  const std::vector<Tensor> parts = split_columns(key_value, widths);
  plan.keys = split_heads(parts[0], Hkv);
  plan.values = split_heads(parts[1], Hkv);
  plan.memory = batch;
  plan.heads = H;
  plan.output_weight = output_.weight();
  plan.output_bias = output_.bias();
  plan.rule = rule_of(config_, ctx);
  return plan;
}

SelfParts MultiHeadAttention::project(const Tensor& x, std::span<const int64_t> positions, Context& ctx) const {
  if (!config_.self) return Attention::project(x, positions, ctx);
  const int64_t H = config_.heads, Hkv = config_.kv_heads, widths[] = {H * D_, Hkv * D_, Hkv * Dv_};
  Tensor joint = joint_.forward(x);  // [T, H·D + Hkv·(D + Dv)]
  if (turned_) joint = turned_(joint, H + Hkv, D_, positions);
  const std::vector<Tensor> parts = split_columns(joint, widths);
  return {split_heads(parts[0], H), split_heads(parts[1], Hkv), split_heads(parts[2], Hkv),
          rule_of(config_, ctx),    output_.weight(),           output_.bias()};
}

Tensor MultiHeadAttention::forward(const Tensor& query, const Tensor& memory, const AttentionCall& call,
                                   Context& ctx) const {
  if (!config_.self) return Attention::forward(query, memory, call, ctx);
  const int64_t H = config_.heads, Hkv = config_.kv_heads;
  if (D_ != Dv_) return self_forward(*this, query, call, ctx);
  ScoreRule rule = rule_of(config_, ctx);
  rule.causal = call.causal;
  rule.bias = call.bias;
  rule.q_offsets = rule.k_offsets = call.queries.offsets();
  Tensor joint = joint_.forward(query);  // [T, (H + 2·Hkv)·D]
  if (turned_) joint = turned_(joint, H + Hkv, D_, call.queries.positions());
  if (ctx.trace) {
    const int64_t widths[] = {H * D_, Hkv * D_, Hkv * Dv_};
    const std::vector<Tensor> seen = split_columns(joint.detach(), widths);
    trace_attention(split_heads(seen[0], H), {split_heads(seen[1], Hkv), split_heads(seen[2], Hkv)}, rule, call, ctx);
  }
  return output_.forward(self_attention(joint, H, Hkv, rule));
}

}  // namespace

std::unique_ptr<Attention> make_multi_head(const AttentionConfig& config, Rng& rng) {
  return std::make_unique<MultiHeadAttention>(config, rng);
}

}  // namespace qkv
