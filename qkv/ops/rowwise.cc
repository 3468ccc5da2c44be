// Ops over rows: softmax and its relatives, layer norm, cross entropy.
#include <string>

#include "qkv/kernels/rowwise.h"
#include "qkv/ops/common.h"
#include "qkv/ops/ops.h"

namespace qkv {
namespace {

int64_t rows_of(const Tensor& x) { return x.dim(-1) == 0 ? 0 : x.numel() / x.dim(-1); }

// softmax or log-softmax over the last axis, the first lens[r] columns of row r only when lens is not empty.
Tensor softmax_op(const char* op, const Tensor& x_in, bool logarithm, const std::vector<int64_t>& lens) {
  check_defined(op, x_in);
  if (x_in.rank() < 1) shape_error(op, "expected at least one axis, got a scalar");
  const Tensor x = dense(x_in);
  Tensor out = Tensor::empty(x.shape(), x.dtype());
  dispatch(x.dtype(), [&](auto t) {
    using T = decltype(t);
    const kernels::SoftmaxRows<T> args{rows_of(x), x.dim(-1), x.data<T>(), out.data<T>(),
                                       lens.empty() ? nullptr : lens.data()};
    logarithm ? kernels::log_softmax_rows(args) : kernels::softmax_rows(args);
  });
  return record(op, out, {x_in}, [out, logarithm](const Tensor& d_out, Grads& d) {
    const Tensor g = dense(d_out);
    Tensor d_x = Tensor::empty(out.shape(), out.dtype());
    dispatch(out.dtype(), [&](auto t) {
      using T = decltype(t);
      const kernels::SoftmaxRowsBackward<T> args{rows_of(out), out.dim(-1), out.data<T>(), g.data<T>(), d_x.data<T>()};
      logarithm ? kernels::log_softmax_rows_backward(args) : kernels::softmax_rows_backward(args);
    });
    d.add(0, d_x);
  });
}

}  // namespace

Tensor softmax(const Tensor& x) { return softmax_op("softmax", x, false, {}); }
Tensor log_softmax(const Tensor& x) { return softmax_op("log_softmax", x, true, {}); }

Tensor masked_softmax(const Tensor& x, std::span<const int64_t> lens) {
  check_defined("masked_softmax", x);
  if (x.rank() != 3) shape_error("masked_softmax", "expected [B,Lq,Lk], got " + x.shape().str());
  const int64_t B = x.dim(0), Lq = x.dim(1), Lk = x.dim(2), n = static_cast<int64_t>(lens.size());
  if (n != B && n != B * Lq) {
    shape_error("masked_softmax", std::to_string(n) + " lengths for x=" + x.shape().str() + "; expected B or B·Lq");
  }
  std::vector<int64_t> rows(static_cast<size_t>(B * Lq));
  for (int64_t r = 0; r < B * Lq; ++r) {
    const int64_t len = lens[static_cast<size_t>(n == B ? r / Lq : r)];
    if (len < 0 || len > Lk) {
      shape_error("masked_softmax", "length " + std::to_string(len) + " outside [0, " + std::to_string(Lk) + "]");
    }
    rows[static_cast<size_t>(r)] = len;
  }
  return softmax_op("masked_softmax", x, false, rows);
}

namespace {

void check_layer_norm(const Tensor& x, const Tensor& residual, const Tensor& gamma, const Tensor& beta) {
  check_defined("layer_norm", x);
  const Shape width{x.dim(-1)};
  for (const Tensor& p : {gamma, beta}) {
    check_defined("layer_norm", p);
    check_same_dtype("layer_norm", x, p);
    if (!(p.shape() == width)) {
      shape_error("layer_norm", "x=" + x.shape().str() + " with a parameter of shape " + p.shape().str());
    }
  }
  if (residual.defined() && (!(residual.shape() == x.shape()) || residual.dtype() != x.dtype())) {
    shape_error("layer_norm", "x=" + x.shape().str() + " with a residual of shape " + residual.shape().str());
  }
}

// {s, norm(s)} with s = x (+ residual). Without a residual s is x itself and only the norm is an output.
std::vector<Tensor> layer_norm_op(const char* op, const std::vector<Tensor>& in, double eps) {
  const Tensor &x_in = in[0], &residual_in = in[3];
  check_layer_norm(x_in, residual_in, in[1], in[2]);
  const Tensor x = dense(x_in), gamma = dense(in[1]), beta = dense(in[2]);
  const Tensor residual = residual_in.defined() ? dense(residual_in) : Tensor();
  const int64_t rows = rows_of(x), C = x.dim(-1);
  Tensor out = Tensor::empty(x.shape(), x.dtype()), s = residual.defined() ? Tensor::empty(x.shape(), x.dtype()) : x;
  Tensor mean = Tensor::empty({rows}, x.dtype()), rstd = Tensor::empty({rows}, x.dtype());
  dispatch(x.dtype(), [&](auto t) {
    using T = decltype(t);
    const kernels::LayerNorm<T> args{.rows = rows,
                                     .cols = C,
                                     .eps = static_cast<T>(eps),
                                     .x = x.data<T>(),
                                     .residual = residual.defined() ? residual.data<T>() : nullptr,
                                     .sum = residual.defined() ? s.data<T>() : nullptr,
                                     .gamma = gamma.data<T>(),
                                     .beta = beta.data<T>(),
                                     .y = out.data<T>(),
                                     .mean = mean.data<T>(),
                                     .rstd = rstd.data<T>()};
    kernels::layer_norm(args);
  });
  const bool fused = residual.defined();
  const auto backward = [=](const std::vector<Tensor>& d_outs, Grads& d) {
    const Tensor &d_y = d_outs.back(), &d_sum_in = d_outs.front();
    const Tensor d_sum = fused && d_sum_in.defined() ? dense(d_sum_in) : Tensor();
    const auto hand_on = [&](const Tensor& d_s) {
      d.add(0, d_s);
      if (fused) d.add(3, d_s);
    };
    if (!d_y.defined()) {
      if (d_sum.defined()) hand_on(d_sum);
      return;
    }
    const Tensor g = dense(d_y);
    Tensor d_s = Tensor::empty(s.shape(), s.dtype());
    Tensor d_gamma = d.wants(1) ? d.buffer(1) : Tensor(), d_beta = d.wants(2) ? d.buffer(2) : Tensor();
    dispatch(s.dtype(), [&](auto t) {
      using T = decltype(t);
      const auto at = [](auto& p) { return p.defined() ? p.template data<T>() : nullptr; };
      const kernels::LayerNormBackward<T> args{.rows = rows,
                                               .cols = C,
                                               .s = s.data<T>(),
                                               .gamma = gamma.data<T>(),
                                               .mean = mean.data<T>(),
                                               .rstd = rstd.data<T>(),
                                               .d_y = g.data<T>(),
                                               .d_sum = at(d_sum),
                                               .d_s = d_s.data<T>(),
                                               .d_gamma = at(d_gamma),
                                               .d_beta = at(d_beta)};
      kernels::layer_norm_backward(args);
    });
    hand_on(d_s);
  };
  return record(op, fused ? std::vector<Tensor>{s, out} : std::vector<Tensor>{out}, in, backward);
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps) {
  return layer_norm_op("layer_norm", {x, gamma, beta, {}}, eps)[0];
}

SumAndNorm add_layer_norm(const Tensor& x, const Tensor& residual, const Tensor& gamma, const Tensor& beta,
                          double eps) {
  check_defined("add_layer_norm", residual);
  const std::vector<Tensor> both = layer_norm_op("add_layer_norm", {x, gamma, beta, residual}, eps);
  return {both[0], both[1]};
}

Tensor cross_entropy(const Tensor& logits_in, std::span<const int64_t> targets, const CrossEntropyOptions& options) {
  check_defined("cross_entropy", logits_in);
  const int64_t V = logits_in.dim(-1), rows = rows_of(logits_in);
  if (static_cast<int64_t>(targets.size()) != rows) {
    shape_error("cross_entropy", std::to_string(targets.size()) + " targets for logits=" + logits_in.shape().str());
  }
  int64_t counted = 0;
  for (int64_t target : targets) {
    if (target == options.ignore) continue;
    if (target < 0 || target >= V) {
      shape_error("cross_entropy", "target " + std::to_string(target) + " outside [0, " + std::to_string(V) + ")");
    }
    ++counted;
  }
  const Tensor logits = dense(logits_in);
  Tensor loss = Tensor::empty({rows}, logits.dtype()), lse = Tensor::empty({rows}, logits.dtype());
  const std::vector<int64_t> kept(targets.begin(), targets.end());
  const double share = counted == 0 ? 0.0 : 1.0 / static_cast<double>(counted);
  const auto args_for = [=]<class T>(T) {
    return kernels::CrossEntropy<T>{.rows = rows,
                                    .V = V,
                                    .logits = logits.data<T>(),
                                    .targets = kept.data(),
                                    .ignore_index = options.ignore,
                                    .smoothing = static_cast<T>(options.label_smoothing),
                                    .d_scale = T(1)};
  };
  double total = 0;
  dispatch(logits.dtype(), [&](auto t) {
    using T = decltype(t);
    auto args = args_for(t);
    args.loss = loss.data<T>();
    args.lse = lse.data<T>();
    kernels::cross_entropy(args);
    for (int64_t r = 0; r < rows; ++r) total += static_cast<double>(loss.data<T>()[r]);
  });
  return record("cross_entropy", Tensor::full({}, total * share, logits.dtype()), {logits_in},
                [=](const Tensor& d_out, Grads& d) {
                  Tensor d_logits = Tensor::empty(logits.shape(), logits.dtype()), saved = lse;
                  dispatch(logits.dtype(), [&](auto t) {
                    using T = decltype(t);
                    auto args = args_for(t);
                    args.lse = saved.data<T>();
                    args.d_logits = d_logits.data<T>();
                    args.d_scale = static_cast<T>(share * d_out.item());
                    kernels::cross_entropy_backward(args);
                  });
                  d.add(0, d_logits);
                });
}

}  // namespace qkv
