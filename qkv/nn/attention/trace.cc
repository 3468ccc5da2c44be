// Traces of attention: its weights and the numbers behind each of them, computed when somebody looks.
#include <algorithm>
#include <cmath>

#include "qkv/core/autograd.h"
#include "qkv/nn/attention/mechanism.h"

namespace qkv {
namespace {

/// Row `row` of head h of x [T, heads, D].
std::vector<double> vector_at(const Tensor& x, int64_t row, int64_t h) {
  return slice(slice(x, 0, row, row + 1), 1, h, h + 1).to_doubles();
}

std::vector<double> row_at(const TracedCall& t, ScoreStage stage, int64_t b, int64_t h, int64_t i) {
  return attention_scores(t.q, t.k, t.rule, {.b = b, .h = h, .row_begin = i, .row_end = i + 1, .stage = stage})
      .to_doubles();
}

/// The products behind the score, dimension by dimension.
void meet(AttentionCell& cell, const ScoreRule& rule) {
  const bool additive = rule.additive.defined();
  if (additive) cell.score_weight = rule.additive.to_doubles();
  for (size_t d = 0; d < cell.query.size(); ++d) {
    const double q = cell.query[d], k = cell.key[d];
    cell.terms.push_back(additive ? cell.score_weight[d] * std::tanh(q + k) : q * k);
    cell.product += cell.terms.back();
  }
  const double usual = additive ? 1.0 : 1.0 / std::sqrt(static_cast<double>(cell.query.size()));
  cell.scale = rule.scale.value_or(usual);
  cell.softcap = rule.softcap;
  cell.normaliser = rule.normaliser;
}

AttentionCell cell_of(const TracedCall& t, int64_t b, int64_t h, int64_t i, int64_t j) {
  const NoGrad no_grad;
  const auto sequence = static_cast<size_t>(b);
  const int64_t first_key = t.rule.k_offsets[sequence], keys = t.rule.k_offsets[sequence + 1] - first_key;
  const int64_t kv_head = h / (t.q.dim(1) / t.k.dim(1));
  const auto key = static_cast<size_t>(j);
  AttentionCell cell;
  cell.query = vector_at(t.q, t.rule.q_offsets[sequence] + i, h);
  cell.key = vector_at(t.k, first_key + j, kv_head);
  cell.value = vector_at(t.v, first_key + j, kv_head);
  meet(cell, t.rule);
  cell.raw = row_at(t, ScoreStage::raw, b, h, i)[key];
  cell.capped = row_at(t, ScoreStage::capped, b, h, i)[key];
  const std::vector<double> scores = row_at(t, ScoreStage::biased, b, h, i);
  const std::vector<double> weights = row_at(t, ScoreStage::weights, b, h, i);
  cell.biased = scores[key];
  cell.weight = weights[key];
  cell.largest = *std::max_element(scores.begin(), scores.end());
  for (const double z : scores) {
    if (std::isfinite(z)) cell.total += std::exp(z - cell.largest);
  }
  cell.output.assign(cell.value.size(), 0.0);
  const std::vector<double> values =
      slice(slice(t.v, 0, first_key, first_key + keys), 1, kv_head, kv_head + 1).to_doubles();
  for (size_t n = 0; n < weights.size() && n < static_cast<size_t>(keys); ++n) {
    if (weights[n] == 0) continue;  // behind a mask there may be anything
    for (size_t d = 0; d < cell.output.size(); ++d) {
      cell.output[d] += weights[n] * values[n * cell.output.size() + d];
    }
  }
  return cell;
}

/// The length of the longest sequence.
int64_t longest(const std::vector<int64_t>& offsets) {
  int64_t most = 0;
  for (size_t b = 1; b < offsets.size(); ++b) most = std::max(most, offsets[b] - offsets[b - 1]);
  return most;
}

}  // namespace

AttentionTrace trace_of(std::string site, int layer, TracedCall call) {
  AttentionTrace trace;
  trace.site = std::move(site);
  trace.layer = layer;
  trace.B = static_cast<int64_t>(call.rule.q_offsets.size()) - 1;
  trace.H = call.q.dim(1);
  trace.Lq = longest(call.rule.q_offsets);
  trace.Lk = longest(call.rule.k_offsets);
  trace.causal = call.rule.causal;
  trace.call = std::make_shared<const TracedCall>(std::move(call));
  trace.scores = [kept = trace.call](const ScoreWindow& window) {
    return attention_scores(kept->q, kept->k, kept->rule, window);
  };
  trace.cell = [kept = trace.call](int64_t b, int64_t h, int64_t i, int64_t j) { return cell_of(*kept, b, h, i, j); };
  return trace;
}

AttentionTrace trace_of_weights(std::string site, int layer, Tensor weights) {
  AttentionTrace trace;
  trace.site = std::move(site);
  trace.layer = layer;
  trace.B = 1;
  trace.H = weights.dim(0);
  trace.Lq = weights.dim(1);
  trace.Lk = weights.dim(2);
  trace.scores = [kept = std::move(weights)](const ScoreWindow& w) {
    const NoGrad no_grad;
    return contiguous(reshape(slice(slice(kept, 0, w.h, w.h + 1), 1, w.row_begin, w.row_end),
                              {w.row_end - w.row_begin, kept.dim(2)}));
  };
  return trace;
}

void trace_attention(const Tensor& q, const KeysAndValues& memory, const ScoreRule& rule, const AttentionCall& call,
                     Context& ctx) {
  if (!ctx.trace) return;
  TracedCall traced{q.detach(), memory.keys.detach(), memory.values.detach(), rule};
  traced.rule.q_offsets = call.queries.offsets();
  traced.rule.k_offsets = call.memory.offsets();
  if (traced.rule.bias.defined()) traced.rule.bias = traced.rule.bias.detach();
  if (traced.rule.additive.defined()) traced.rule.additive = traced.rule.additive.detach();
  ctx.trace->see(trace_of(call.site, call.layer, std::move(traced)));
}

}  // namespace qkv
