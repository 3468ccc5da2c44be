// Construction and forward passes of the everyday layers.
#include "qkv/nn/layers.h"

#include <cmath>

#include "qkv/base/error.h"

namespace qkv {

Tensor parameter(Tensor t) { return t.set_requires_grad(true); }

void check_size(const char* what, int64_t size) {
  if (size < 1) throw ConfigError(std::string(what) + " must be at least 1, not " + std::to_string(size));
}

Linear::Linear(int64_t in, int64_t out, Rng& rng, bool bias) {
  check_size("[linear] input width", in);
  check_size("[linear] output width", out);
  const double bound = 1.0 / std::sqrt(static_cast<double>(in));
  weight_ = parameter(Tensor::uniform({out, in}, rng, -bound, bound));
  if (bias) bias_ = parameter(Tensor::uniform({out}, rng, -bound, bound));
}

Embedding::Embedding(int64_t vocabulary, int64_t width, Rng& rng, double stddev) {
  check_size("[embedding] vocabulary", vocabulary);
  check_size("[embedding] width", width);
  table_ = parameter(Tensor::randn({vocabulary, width}, rng, stddev));
}

LayerNorm::LayerNorm(int64_t width, double eps) : eps_(eps) {
  check_size("[layer_norm] width", width);
  gamma_ = parameter(Tensor::full({width}, 1.0));
  beta_ = parameter(Tensor::zeros({width}));
}

SumAndNorm LayerNorm::forward_sum(const Tensor& x, const Tensor& residual) const {
  return add_layer_norm(x, residual, gamma_, beta_, eps_);
}

Dropout::Dropout(double p) : p_(p) {
  if (!(p >= 0 && p < 1)) throw ConfigError("[dropout] p = " + std::to_string(p) + " is outside [0, 1)");
}

Tensor Dropout::forward(const Tensor& x, Context& ctx) const {
  if (!ctx.training() || p_ == 0) return x;
  return dropout(x, p_, ctx.next_seed());
}

FeedForward::FeedForward(int64_t width, int64_t inner, Act act, double dropout, Rng& rng)
    : inner_(width, inner, rng), outer_(inner, width, rng), act_(act), dropout_(dropout) {}

Tensor FeedForward::forward(const Tensor& x, Context& ctx) const {
  return outer_.forward(dropout_.forward(inner_.forward(x, act_), ctx));
}

}  // namespace qkv
