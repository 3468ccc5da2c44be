// Muon: updates of inner matrices made orthogonal by Newton-Schulz steps.
#include <algorithm>
#include <cmath>

#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "qkv/kernels/gemm/gemm.h"
#include "qkv/optim/optimizer.h"

namespace qkv {
namespace {

// p(s) = a s + b s³ + c s⁵ brings every singular value in (0, 1] near 1 after five steps, and does it fastest with
// these (Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks").
constexpr float kA = 3.4445F, kB = -4.7750F, kC = 2.0315F;
constexpr int kSteps = 5;

/// Elementwise y = u·x + v·y, in blocks of a fixed size.
void combine(float u, const float* x, float v, float* y, int64_t n) {
  parallel_blocks(n, 16384, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = u * x[i] + v * y[i];
  });
}

double norm_of(const float* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return std::sqrt(sum);
}

struct Product {
  const float* a;
  int64_t lda;
  bool a_transposed;
  const float* b;
  int64_t ldb;
  bool b_transposed;
};

/// c [M, N] = op(a) op(b), with mnk = {M, N, K}.
void multiply(const Product& p, const int64_t (&mnk)[3], float* c) {
  kernels::gemm({.M = mnk[0],
                 .N = mnk[1],
                 .K = mnk[2],
                 .a = p.a,
                 .lda = p.lda,
                 .a_transposed = p.a_transposed,
                 .b = p.b,
                 .ldb = p.ldb,
                 .b_transposed = p.b_transposed,
                 .c = c,
                 .ldc = mnk[1]});
}

}  // namespace

Tensor orthogonal(const Tensor& x) {
  if (x.rank() != 2 || x.dtype() != DType::f32)
    throw ShapeError("[orthogonal] needs an f32 matrix: x=" + x.shape().str());
  const int64_t rows = x.dim(0), columns = x.dim(1), n = std::min(rows, columns);
  const bool tall = rows > columns;
  Tensor y = x.clone(), next = Tensor::zeros(x.shape());
  const auto scale = static_cast<float>(1 / (norm_of(y.f32(), y.numel()) + 1e-7));
  combine(0, y.f32(), scale, y.f32(), y.numel());
  Tensor square = Tensor::zeros({n, n}), polynomial = Tensor::zeros({n, n});
  for (int step = 0; step < kSteps; ++step) {
    // S = Y Yᵀ (or YᵀY, whichever is smaller);  P = b S + c S²;  Y = a Y + P Y (or Y P)
    const Product gram{y.f32(), columns, tall, y.f32(), columns, !tall};
    multiply(gram, {n, n, std::max(rows, columns)}, square.f32());
    multiply({square.f32(), n, false, square.f32(), n, false}, {n, n, n}, polynomial.f32());
    combine(kB, square.f32(), kC, polynomial.f32(), n * n);
    if (tall) {
      multiply({y.f32(), columns, false, polynomial.f32(), n, false}, {rows, columns, n}, next.f32());
    } else {
      multiply({polynomial.f32(), n, false, y.f32(), columns, false}, {rows, columns, n}, next.f32());
    }
    combine(kA, y.f32(), 1, next.f32(), y.numel());
    std::swap(y, next);
  }
  return y;
}

bool is_inner_matrix(const NamedParameter& parameter) {
  if (parameter.value.rank() != 2) return false;
  const std::string& name = parameter.name;
  if (name.starts_with("head.") || name.starts_with("output.")) return false;
  const auto named = [&](const char* word) { return name.find(word) != std::string::npos; };
  return !named("embed") && !named("tokens.") && !named("positions");
}

Muon::Muon(std::vector<NamedParameter> parameters, const AdamWOptions& options, double momentum)
    : AdamW(std::move(parameters), options), momentum_(momentum) {
  if (momentum < 0 || momentum >= 1) throw ConfigError("[muon] momentum must lie in [0, 1)");
  for (const NamedParameter& p : this->parameters()) {
    if (p.value.dtype() != DType::f32) throw ConfigError("[muon] parameter '" + p.name + "' is not f32");
    takes_.push_back(is_inner_matrix(p));
  }
}

void Muon::prepare(std::vector<Tensor>& grads, double grad_scale) const {
  const auto mu = static_cast<float>(momentum_), rest = static_cast<float>((1 - momentum_) * grad_scale);
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!takes_[i] || !grads[i].defined()) continue;
    Tensor m = moment(0, i), u = grads[i].clone();
    combine(rest, u.f32(), mu, m.f32(), m.numel());
    combine(mu, m.f32(), rest, u.f32(), u.numel());
    grads[i] = orthogonal(u);
  }
}

void Muon::update(const Block& block, const Tensor& grad, const Update& how) const {
  if (!takes_[block.parameter]) return AdamW::update(block, grad, how);
  Tensor p = parameters()[block.parameter].value;
  const double size = static_cast<double>(std::max(p.dim(0), p.dim(1)));
  const auto rate = static_cast<float>(how.lr * 0.2 * std::sqrt(size));
  const auto keep = static_cast<float>(1 - how.lr * options().weight_decay);
  for (int64_t i = block.begin; i < block.end; ++i) p.f32()[i] = keep * p.f32()[i] - rate * grad.f32()[i];
}

}  // namespace qkv
