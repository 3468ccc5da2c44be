// Learning-rate schedules: a linear warm-up, then a curve.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace qkv {

enum class ScheduleKind : uint8_t { constant, linear, cosine, inverse_sqrt };

/// The names "constant", "linear", "cosine", "inverse-sqrt", in that order.
const std::vector<std::string>& schedule_names();
/// Throws ConfigError listing the names.
ScheduleKind schedule_kind(const std::string& name);

/// For update t = 0, 1, …, with w = warmup and s = t + 1:
///   s ≤ w:         peak · s/w
///   constant:      peak
///   linear:        peak · (1 + (final - 1)·u),  u = (t - w)/(total - w) cut to [0, 1]
///   cosine:        peak · (final + (1 - final)·(1 + cos πu)/2)
///   inverse_sqrt:  peak · √(max(w, 1)/s)
struct Schedule {
  ScheduleKind kind = ScheduleKind::constant;
  double peak = 1e-3;
  int64_t warmup = 0, total = 1;  // in updates
  double final = 0;               // where linear and cosine end, as a fraction of the peak
};

double learning_rate(const Schedule& schedule, int64_t t);

}  // namespace qkv
