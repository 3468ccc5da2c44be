// Learning-rate schedules.
#include "qkv/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace qkv {

double learning_rate(const Schedule& schedule, int64_t t) {
  const auto w = static_cast<double>(schedule.warmup), s = static_cast<double>(t + 1);
  if (t < schedule.warmup) return schedule.peak * s / w;
  const double rest = static_cast<double>(std::max<int64_t>(schedule.total - schedule.warmup, 1));
  const double u = std::clamp((s - 1 - w) / rest, 0.0, 1.0);
  switch (schedule.kind) {
    case ScheduleKind::linear:
      return schedule.peak * (1 + (schedule.final - 1) * u);
    case ScheduleKind::cosine:
      return schedule.peak * (schedule.final + (1 - schedule.final) * (1 + std::cos(std::numbers::pi * u)) / 2);
    case ScheduleKind::inverse_sqrt:
      return schedule.peak * std::sqrt(std::max(w, 1.0) / s);
    case ScheduleKind::constant:
      break;
  }
  return schedule.peak;
}

}  // namespace qkv
