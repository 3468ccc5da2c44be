// The everyday layers: linear, embedding, layer norm, dropout and the feed-forward block.
#pragma once

#include <span>
#include <string>

#include "qkv/base/rng.h"
#include "qkv/nn/context.h"
#include "qkv/nn/module.h"
#include "qkv/ops/ops.h"

namespace qkv {

/// A trained value: t itself, marked to receive a gradient.
Tensor parameter(Tensor t);

/// act(x Wᵀ + b): x [..., in] → [..., out]. Weight and bias start uniform in ±1/√in, as PyTorch's do.
class Linear {
 public:
  Linear() = default;
  /// Throws ConfigError unless both sizes are at least 1.
  Linear(int64_t in, int64_t out, Rng& rng, bool bias = true);

  Tensor forward(const Tensor& x, Act act = Act::none) const { return linear(x, weight_, bias_, act); }
  void visit(Visitor& see) {
    see("weight", weight_);
    see("bias", bias_);
  }

  bool defined() const { return weight_.defined(); }
  Tensor& weight() { return weight_; }
  const Tensor& weight() const { return weight_; }  // [out, in]
  const Tensor& bias() const { return bias_; }      // [out], undefined without bias

 private:
  Tensor weight_, bias_;
};

/// Rows of a table [V, C] by id. Starts as N(0, stddev²); 1 is PyTorch's choice, Transformers use 0.02 or C^-½.
class Embedding {
 public:
  Embedding() = default;
  /// Throws ConfigError unless both sizes are at least 1.
  Embedding(int64_t vocabulary, int64_t width, Rng& rng, double stddev = 1.0);

  Tensor forward(std::span<const int64_t> ids) const { return embedding(table_, ids); }  // [ids, C]
  void visit(Visitor& see) { see("weight", table_); }

  Tensor& table() { return table_; }
  const Tensor& table() const { return table_; }

 private:
  Tensor table_;
};

/// (x - mean)/√(var + eps)·γ + β over the last axis; starts as γ = 1, β = 0.
class LayerNorm {
 public:
  LayerNorm() = default;
  explicit LayerNorm(int64_t width, double eps = 1e-5);

  Tensor forward(const Tensor& x) const { return layer_norm(x, gamma_, beta_, eps_); }
  /// x + residual and its norm, in one pass.
  SumAndNorm forward_sum(const Tensor& x, const Tensor& residual) const;
  void visit(Visitor& see) {
    see("weight", gamma_);
    see("bias", beta_);
  }

  const Tensor& gamma() const { return gamma_; }
  const Tensor& beta() const { return beta_; }
  double eps() const { return eps_; }

 private:
  Tensor gamma_, beta_;
  double eps_ = 1e-5;
};

/// Zeroes each element with probability p while training and scales the rest by 1/(1-p); the identity in inference.
class Dropout {
 public:
  /// Throws ConfigError unless 0 ≤ p < 1.
  explicit Dropout(double p = 0);

  Tensor forward(const Tensor& x, Context& ctx) const;
  double p() const { return p_; }

 private:
  double p_ = 0;
};

/// act(x W₁ᵀ + b₁) W₂ᵀ + b₂ with dropout after the activation; bias and activation are part of the products.
class FeedForward {
 public:
  FeedForward() = default;
  FeedForward(int64_t width, int64_t inner, Act act, double dropout, Rng& rng);

  Tensor forward(const Tensor& x, Context& ctx) const;
  void visit(Visitor& see) {
    see("inner", inner_);
    see("outer", outer_);
  }

  const Linear& inner() const { return inner_; }
  const Linear& outer() const { return outer_; }
  Act act() const { return act_; }

 private:
  Linear inner_, outer_;
  Act act_ = Act::relu;
  Dropout dropout_;
};

/// Throws ConfigError naming `what` unless size ≥ 1.
void check_size(const char* what, int64_t size);

}  // namespace qkv
