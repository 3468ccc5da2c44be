// Lists and forces SIMD targets; the only code that talks to Highway's dispatcher directly.
#include "qkv/kernels/simd_target.h"

#include "hwy/targets.h"

namespace qkv::kernels {

#if defined(HWY_COMPILE_ONLY_STATIC)  // WebAssembly: one target, and no dispatcher

std::vector<std::string> simd_targets() { return {simd_target()}; }
std::string simd_target() { return hwy::TargetName(HWY_STATIC_TARGET); }
bool force_simd_target(const std::string& name) { return name.empty() || name == simd_target(); }

#else

namespace {

// Supported by the processor and compiled in, whatever is forced at the moment: listed once, on first use.
const std::vector<int64_t>& usable_targets() {
  static const std::vector<int64_t> usable = hwy::SupportedAndGeneratedTargets();
  return usable;
}

}  // namespace

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  for (int64_t t : usable_targets()) names.emplace_back(hwy::TargetName(t));
  return names;
}

std::string simd_target() {
  const auto& usable = usable_targets();
  const int64_t enabled = hwy::SupportedTargets();
  for (int64_t t : usable)
    if (t & enabled) return hwy::TargetName(t);
  return hwy::TargetName(usable.back());
}

bool force_simd_target(const std::string& name) {
  const auto& usable = usable_targets();  // before anything is forced: the list is made once
  if (name.empty()) {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    return true;
  }
  for (int64_t t : usable) {
    if (name != hwy::TargetName(t)) continue;
    hwy::SetSupportedTargetsForTest(t);
    hwy::GetChosenTarget().Update(t);
    return true;
  }
  return false;
}

#endif

}  // namespace qkv::kernels
