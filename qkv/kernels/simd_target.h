// Which SIMD instruction set the kernels run on, by name, and how a test or bench forces another.
#pragma once

#include <string>
#include <vector>

namespace qkv::kernels {

/// Names of the instruction sets compiled in and supported by this processor, best first: for example
/// {"AVX3", "AVX2", "SSE4", "SCALAR"}. Never empty. Not affected by force_simd_target.
std::vector<std::string> simd_targets();

/// The one that kernels run on now.
std::string simd_target();

/// Makes every kernel of the process run on `name` (one of simd_targets()); "" goes back to the best. Returns
/// false, changing nothing, for any other name. For tests and benches: not while a kernel runs.
bool force_simd_target(const std::string& name);

/// Forces a target for the lifetime of the object.
class ScopedSimdTarget {
 public:
  explicit ScopedSimdTarget(const std::string& name) : forced_(force_simd_target(name)) {}
  ~ScopedSimdTarget() { force_simd_target(""); }
  ScopedSimdTarget(const ScopedSimdTarget&) = delete;
  ScopedSimdTarget& operator=(const ScopedSimdTarget&) = delete;
  /// False when this processor or build lacks the target.
  bool forced() const { return forced_; }

 private:
  bool forced_;
};

}  // namespace qkv::kernels
