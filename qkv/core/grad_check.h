// Gradient check: recorded gradients against central differences.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "qkv/core/tensor.h"

namespace qkv {

/// How closely gradients are checked.
struct GradCheckOptions {
  double step = 1e-5;
  double tolerance = 1e-6;  // of the largest gradient element, at least 1
  uint64_t seed = 1;        // of the random probe
};

/// What a gradient check found.
struct GradCheckResult {
  bool ok = true;
  double worst = 0;     // largest difference over max(1, largest gradient)
  std::string message;  // "input 1 element 5: recorded 0.25, measured 0.31" when not ok
};

/// Checks d(Σ r·fn(inputs))/d input for a random r (a plain sum hides sign errors), for every element of every
/// input. Inputs are taken as f64 copies, so the reference kernels run and the check is exact up to rounding.
GradCheckResult grad_check(const std::function<Tensor(const std::vector<Tensor>&)>& fn,
                           const std::vector<Tensor>& inputs, const GradCheckOptions& options = {});

}  // namespace qkv
