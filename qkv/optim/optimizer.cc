// Optimizer steps over blocks of a fixed size, so that threads share the work and not the result.
#include "qkv/optim/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "qkv/core/dispatch.h"
#include "qkv/kernels/optimizer_step.h"

namespace qkv {
namespace {

constexpr int64_t kBlock = 16384;

void require(bool ok, const char* optimizer, const char* what) {
  if (!ok) throw ConfigError(std::string("[") + optimizer + "] " + what);
}

/// Σ x² in double, in eight lanes so that the compiler may use vectors without changing the order.
template <class T>
double sum_of_squares(const T* x, int64_t n) {
  std::array<double, 8> lane{};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (size_t j = 0; j < 8; ++j) {
      const auto v = static_cast<double>(x[i + static_cast<int64_t>(j)]);
      lane[j] += v * v;
    }
  }
  for (; i < n; ++i) lane[static_cast<size_t>(i % 8)] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

Tensor dense(const Tensor& t) { return t.is_contiguous() ? t : t.clone(); }

/// Elements [begin, end) of a parameter p, its gradient and its moments, where there are any.
template <class T>
kernels::ParameterSlice<T> slice(int64_t begin, int64_t end, const std::array<Tensor, 4>& p_g_m_v) {
  std::array<T*, 4> at{};
  for (size_t i = 0; i < at.size(); ++i) {
    if (Tensor t = p_g_m_v[i]; t.defined()) at[i] = t.data<T>() + begin;
  }
  return {end - begin, at[0], at[1], at[2], at[3]};
}

}  // namespace

Optimizer::Optimizer(std::vector<NamedParameter> parameters) : parameters_(std::move(parameters)) {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& p = parameters_[i].value;
    if (!p.is_contiguous()) throw ShapeError("[optimizer] parameter '" + parameters_[i].name + "' is a strided view");
    for (int64_t begin = 0; begin < p.numel(); begin += kBlock) {
      blocks_.push_back({i, begin, std::min(begin + kBlock, p.numel())});
    }
  }
  steps_ = Tensor::zeros({static_cast<int64_t>(parameters_.size())}, DType::f64);
}

size_t Optimizer::add_moment(const char* prefix) {
  Moment moment{prefix, {}};
  for (const NamedParameter& p : parameters_) {
    moment.tensors.push_back(Tensor::zeros(p.value.shape(), p.value.dtype()));
  }
  moments_.push_back(std::move(moment));
  return moments_.size() - 1;
}

void Optimizer::step(double lr, double grad_scale) {
  std::vector<Tensor> grads(parameters_.size());
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor g = parameters_[i].value.grad();
    if (!g.defined()) continue;
    grads[i] = dense(g);
  }
  prepare(grads, grad_scale);
  for (size_t i = 0; i < grads.size(); ++i) steps_.f64()[i] += grads[i].defined() ? 1 : 0;
  parallel_for(static_cast<int64_t>(blocks_.size()), [&](int64_t b) {
    const Block& block = blocks_[static_cast<size_t>(b)];
    const Tensor& grad = grads[block.parameter];
    if (!grad.defined()) return;
    update(block, grad, {lr, grad_scale, static_cast<int64_t>(steps_.f64()[block.parameter])});
  });
}

void Optimizer::zero_grad() {
  for (NamedParameter& p : parameters_) p.value.zero_grad();
}

std::vector<NamedParameter> Optimizer::state() const {
  std::vector<NamedParameter> all{{"steps", steps_}};
  for (const Moment& moment : moments_) {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      all.push_back({moment.prefix + "." + parameters_[i].name, moment.tensors[i]});
    }
  }
  return all;
}

AdamW::AdamW(std::vector<NamedParameter> parameters, const AdamWOptions& options)
    : Optimizer(std::move(parameters)), options_(options) {
  require(options.beta1 >= 0 && options.beta1 < 1 && options.beta2 >= 0 && options.beta2 < 1, "adamw",
          "beta1 and beta2 must lie in [0, 1)");
  require(options.eps >= 0 && options.weight_decay >= 0, "adamw", "eps and weight decay must not be negative");
  add_moment("m");
  add_moment("v");
}

void AdamW::update(const Block& block, const Tensor& grad, const Update& how) const {
  const Tensor& p = parameters()[block.parameter].value;
  const Tensor &m = moment(0, block.parameter), &v = moment(1, block.parameter);
  const bool decays = options_.decay_vectors || p.rank() >= 2;
  const kernels::AdamWRule rule{.lr = how.lr,
                                .beta1 = options_.beta1,
                                .beta2 = options_.beta2,
                                .eps = options_.eps,
                                .weight_decay = decays ? options_.weight_decay : 0,
                                .step = how.step,
                                .grad_scale = how.grad_scale,
                                .l2 = options_.l2};
  dispatch(p.dtype(), [&](auto t) {
    kernels::adamw_step(rule, slice<decltype(t)>(block.begin, block.end, {p, grad, m, v}));
  });
}

Sgd::Sgd(std::vector<NamedParameter> parameters, const SgdOptions& options)
    : Optimizer(std::move(parameters)), options_(options) {
  require(options.momentum >= 0 && options.weight_decay >= 0, "sgd", "momentum and weight decay must not be negative");
  require(!options.nesterov || (options.momentum > 0 && options.dampening == 0), "sgd",
          "Nesterov needs momentum and no dampening");
  if (options.momentum > 0) add_moment("m");
}

void Sgd::update(const Block& block, const Tensor& grad, const Update& how) const {
  const Tensor& p = parameters()[block.parameter].value;
  const Tensor m = options_.momentum > 0 ? moment(0, block.parameter) : Tensor();
  const bool decays = options_.decay_vectors || p.rank() >= 2;
  const kernels::SgdRule rule{.lr = how.lr,
                              .momentum = options_.momentum,
                              .dampening = options_.dampening,
                              .weight_decay = decays ? options_.weight_decay : 0,
                              .nesterov = options_.nesterov,
                              .first_step = how.step == 1,
                              .grad_scale = how.grad_scale};
  dispatch(p.dtype(), [&](auto t) {
    kernels::sgd_step(rule, slice<decltype(t)>(block.begin, block.end, {p, grad, m}));
  });
}

double gradient_norm(const std::vector<NamedParameter>& parameters) {
  double total = 0;
  std::vector<double> partial;
  for (const NamedParameter& parameter : parameters) {
    if (!parameter.value.grad().defined()) continue;
    const Tensor g = dense(parameter.value.grad());
    partial.assign(static_cast<size_t>((g.numel() + kBlock - 1) / kBlock), 0.0);
    parallel_blocks(g.numel(), kBlock, [&](int64_t begin, int64_t end) {
      partial[static_cast<size_t>(begin / kBlock)] =
          dispatch(g.dtype(), [&](auto t) { return sum_of_squares(g.data<decltype(t)>() + begin, end - begin); });
    });
    for (const double p : partial) total += p;
  }
  return std::sqrt(total);
}

double clip_factor(double norm, double max_norm) {
  return max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0;
}

}  // namespace qkv
