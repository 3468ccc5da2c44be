// From the arrays and options of the attend command to one call of the attention op.
#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "qkv/app/attend/attend.h"
#include "qkv/base/error.h"
#include "qkv/core/autograd.h"
#include "qkv/ops/ops.h"

namespace qkv::app {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw ShapeError("[attend] " + what); }

void check_not_empty(const char* name, const Tensor& t) {
  if (t.numel() == 0) refuse(std::string(name) + " is empty: " + t.shape().str());
}

void check_layout(const AttendRequest& r) {
  const int rank = r.q.rank();
  if ((rank != 3 && rank != 4) || r.k.rank() != rank || r.v.rank() != rank) {
    refuse("q=" + r.q.shape().str() + ", k=" + r.k.shape().str() + ", v=" + r.v.shape().str() +
           "; expected three arrays [B,H,L,D], or three [B,L,H·D] with --heads");
  }
  check_not_empty("q", r.q);
  check_not_empty("k", r.k);
  check_not_empty("v", r.v);
}

// [B,L,N·D] → [B,N,L,D], a view.
Tensor split_heads(const char* name, const Tensor& x, int64_t heads) {
  if (x.dim(2) % heads != 0) {
    refuse(std::string(name) + "=" + x.shape().str() + " cannot be cut into " + std::to_string(heads) +
           " heads: its last size is no multiple of them");
  }
  return permute(reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), {0, 2, 1, 3});
}

// [B,H,L,D] → [B,L,H·D].
Tensor merge_heads(const Tensor& x) {
  return reshape(permute(x, {0, 2, 1, 3}), {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
}

void check_heads(const char* option, int64_t wanted, const char* name, const Tensor& x) {
  if (wanted != 0 && wanted != x.dim(1)) {
    refuse(std::string(option) + " is " + std::to_string(wanted) + ", but " + name + "=" + x.shape().str() + " has " +
           std::to_string(x.dim(1)));
  }
}

// q, k and v as [B,H,L,D] views, differentiable when the given tensors are.
std::vector<Tensor> with_heads(const AttendRequest& r, const std::vector<Tensor>& arrays) {
  const Tensor &q = arrays[0], &k = arrays[1], &v = arrays[2];
  if (q.rank() == 4) {
    check_heads("--heads", r.heads, "q", q);
    check_heads("--kv-heads", r.kv_heads, "k", k);
    return arrays;
  }
  if (r.kv_heads != 0 && r.heads == 0) throw ConfigError("--kv-heads of [B,L,H·D] arrays needs --heads");
  const int64_t heads = std::max<int64_t>(1, r.heads);
  const int64_t kv_heads = r.kv_heads == 0 ? heads : r.kv_heads;
  return {split_heads("q", q, heads), split_heads("k", k, kv_heads), split_heads("v", v, kv_heads)};
}

Tensor joined(const char* name, const Tensor& past, const Tensor& fresh) {
  if (!past.defined()) return fresh;
  bool fits = past.rank() == 4;
  for (int axis : {0, 1, 3}) fits = fits && past.dim(axis) == fresh.dim(axis);
  if (!fits) {
    refuse(std::string("past-") + name + "=" + past.shape().str() + " does not continue " + name + "=" +
           fresh.shape().str() + "; expected [" + std::to_string(fresh.dim(0)) + "," + std::to_string(fresh.dim(1)) +
           ",P," + std::to_string(fresh.dim(3)) + "]");
  }
  return extend_cache(past, fresh);
}

void check_lengths(const char* option, const Lengths& lens, const std::vector<Shape>& accepted, int64_t keys) {
  if (std::find(accepted.begin(), accepted.end(), lens.shape) == accepted.end()) {
    std::string expected = accepted.front().str();
    if (accepted.size() > 1) expected += " or " + accepted.back().str();
    refuse(std::string(option) + " has shape " + lens.shape.str() + "; expected " + expected);
  }
  for (const int64_t n : lens.values) {
    if (n < 0 || n > keys) {
      refuse(std::string(option) + " holds " + std::to_string(n) + "; expected 0 to " + std::to_string(keys) +
             ", the number of keys");
    }
  }
}

void check_mask(const AttendRequest& r, int64_t B, int64_t H) {
  const Shape shape = r.bias.defined() ? r.bias.shape() : r.mask.shape;
  if (shape.rank() == 3 && shape[0] == B && shape[0] != 1 && shape[0] != H) {
    refuse("mask=" + shape.str() +
           " has one entry for each batch entry, but its first axis means heads; reshape it to " +
           Shape{shape[0], 1, shape[1], shape[2]}.str());
  }
  if (!r.bias.defined()) return;
  for (const float x : std::span<const float>(r.bias.f32(), static_cast<size_t>(r.bias.numel()))) {
    if (std::isnan(x) || x == HUGE_VALF) {
      refuse("the float mask holds " + std::string(std::isnan(x) ? "NaN" : "+inf") +
             "; it is added to the scores: expected finite numbers, or -inf to hide a key");
    }
  }
}

// Where each query is among the keys, and how many keys it may see.
void place_queries(const AttendRequest& r, int64_t B, int64_t Lq, int64_t Lk, ScoreRule& rule) {
  if (r.past_k.defined()) rule.offset = r.past_k.dim(2);
  if (r.kv_lens.given()) {
    check_lengths("--kv-lens", r.kv_lens, {Shape{B}}, Lk);
    for (const int64_t n : r.kv_lens.values) rule.batch_offsets.push_back(n - Lq);
    rule.key_lens = r.kv_lens.values;
  }
  if (!r.valid_lens.given()) return;
  check_lengths("--valid-lens", r.valid_lens, {Shape{B}, Shape{B, Lq}}, Lk);
  std::vector<int64_t> lens = r.valid_lens.values;
  const size_t rows = lens.size() / static_cast<size_t>(B);
  for (size_t i = 0; i < lens.size() && r.kv_lens.given(); ++i) lens[i] = std::min(lens[i], r.kv_lens.values[i / rows]);
  rule.key_lens = std::move(lens);
}

ScoreRule rule_of(const AttendRequest& r, const AttendResult& result) {
  ScoreRule rule;
  rule.scale = r.scale;
  if (!rule.scale && r.score == Score::dot) rule.scale = 1.0;
  rule.softcap = r.softcap;
  rule.causal = r.causal;
  rule.window_left = r.window_left;
  rule.window_right = r.window_right;
  rule.mask = r.mask;
  rule.bias = r.bias;
  rule.normaliser = r.normaliser;
  check_mask(r, result.q.dim(0), result.q.dim(1));
  place_queries(r, result.q.dim(0), result.q.dim(2), result.k.dim(2), rule);
  return rule;
}

Tensor gradient_of(const Tensor& leaf) {
  return leaf.grad().defined() ? leaf.grad() : Tensor::zeros(leaf.shape(), leaf.dtype());
}

}  // namespace

AttendResult compute_attend(const AttendRequest& r) {
  check_layout(r);
  if (r.past_k.defined() != r.past_v.defined()) throw ConfigError("--past-k and --past-v must be given together");
  if (r.past_k.defined() && r.kv_lens.given()) {
    throw ConfigError("--kv-lens (an external cache) and --past-k cannot be combined");
  }
  std::vector<Tensor> leaves = {r.q.detach(), r.k.detach(), r.v.detach()};
  if (r.d_out.defined()) {
    for (Tensor& leaf : leaves) leaf.set_requires_grad(true);
  }
  const std::vector<Tensor> parts = with_heads(r, leaves);
  const Tensor k = joined("k", r.past_k, parts[1]), v = joined("v", r.past_v, parts[2]);
  AttendResult result;
  result.q = parts[0].detach();  // [B,H,Lq,D]
  result.k = k.detach();         // [B,Hkv,Lk,D]
  result.v = v.detach();         // [B,Hkv,Lk,Dv]
  result.rule = rule_of(r, result);
  result.scale = result.rule.scale.value_or(1.0 / std::sqrt(static_cast<double>(result.q.dim(3))));
  Tensor out = attention(parts[0], k, v, result.rule);  // [B,H,Lq,Dv]
  if (r.q.rank() == 3) out = merge_heads(out);          // [B,Lq,H·Dv]
  result.out = out.detach();
  if (!r.d_out.defined()) return result;
  if (!(r.d_out.shape() == out.shape())) {
    refuse("grad-out=" + r.d_out.shape().str() + " is not the gradient of the output " + out.shape().str());
  }
  out.backward(r.d_out);
  result.d_q = gradient_of(leaves[0]);
  result.d_k = gradient_of(leaves[1]);
  result.d_v = gradient_of(leaves[2]);
  return result;
}

}  // namespace qkv::app
