// Attends with a plan, all queries at once.
#include "qkv/ops/attention_plan.h"

#include "qkv/ops/common.h"
#include "qkv/ops/ops.h"

namespace qkv {

Tensor project_queries(const Tensor& s, const AttentionPlan& plan) {
  check_defined("attend", s);
  const int64_t D = plan.keys.dim(2);
  if (plan.uniform) return Tensor::zeros({s.dim(0), plan.heads, D}, s.dtype());
  const Tensor q = plan.query_weight.defined() ? linear(s, plan.query_weight, plan.query_bias) : s;
  if (q.rank() != 2 || q.dim(1) != plan.heads * D) {
    shape_error("attend", "query=" + q.shape().str() + ", keys=" + plan.keys.shape().str() +
                              "; expected a query of width heads·D = " + std::to_string(plan.heads * D));
  }
  return reshape(q, {q.dim(0), plan.heads, D});
}

Tensor context_of(const Tensor& q, const Ragged& queries, const AttentionPlan& plan, ScoreRule rule) {
  rule.q_offsets = queries.offsets();
  rule.k_offsets = plan.memory.offsets();
  const Tensor a = attention(q, plan.keys, plan.values, rule);  // [Tq, heads, Dv]
  const Tensor flat = reshape(a, {a.dim(0), a.dim(1) * a.dim(2)});
  return plan.output_weight.defined() ? linear(flat, plan.output_weight, plan.output_bias) : flat;
}

}  // namespace qkv
