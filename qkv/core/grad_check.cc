// Central differences against recorded gradients.
#include "qkv/core/grad_check.h"

#include <algorithm>
#include <cmath>

#include "qkv/core/autograd.h"

namespace qkv {
namespace {

double probe_dot(const Tensor& out, const std::vector<double>& probe) {
  const std::vector<double> values = out.to_doubles();
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) sum += values[i] * probe[i];
  return sum;
}

}  // namespace

GradCheckResult grad_check(const std::function<Tensor(const std::vector<Tensor>&)>& fn,
                           const std::vector<Tensor>& inputs, const GradCheckOptions& options) {
  std::vector<Tensor> leaves;
  for (const Tensor& t : inputs) leaves.push_back(t.to(DType::f64).set_requires_grad(true));
  const Tensor out = fn(leaves);
  Rng rng(options.seed);
  std::vector<double> probe(static_cast<size_t>(out.numel()));
  for (double& r : probe) r = rng.normal();
  out.backward(Tensor::from(std::span<const double>(probe), out.shape()));

  GradCheckResult result;
  NoGrad guard;
  for (size_t n = 0; n < leaves.size(); ++n) {
    const Tensor grad = leaves[n].grad();
    const std::vector<double> recorded =
        grad.defined() ? grad.to_doubles() : std::vector<double>(static_cast<size_t>(leaves[n].numel()), 0.0);
    double largest = 1;
    for (double g : recorded) largest = std::max(largest, std::abs(g));
    double* x = leaves[n].f64();
    for (size_t i = 0; i < recorded.size(); ++i) {
      const double before = x[i];
      x[i] = before + options.step;
      const double up = probe_dot(fn(leaves), probe);
      x[i] = before - options.step;
      const double down = probe_dot(fn(leaves), probe);
      x[i] = before;
      const double measured = (up - down) / (2 * options.step);
      const double error = std::abs(measured - recorded[i]) / largest;
      if (!(error <= result.worst)) result.worst = error;
      if (!(error <= options.tolerance) && result.ok) {
        result.ok = false;
        result.message = "input " + std::to_string(n) + " element " + std::to_string(i) + ": recorded " +
                         std::to_string(recorded[i]) + ", measured " + std::to_string(measured);
      }
    }
  }
  return result;
}

}  // namespace qkv
