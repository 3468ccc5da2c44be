// Learning-rate schedules: a linear warm-up, then a curve.
#pragma once

#include <cstdint>

#include "qkv/base/names.h"

namespace qkv {

/// The curves after the warm-up.
enum class ScheduleKind : uint8_t { constant, linear, cosine, inverse_sqrt };
template <>
struct Names<ScheduleKind> {
  static constexpr const char* what = "schedule";
  static constexpr NameRow<ScheduleKind> rows[] = {{ScheduleKind::constant, "constant"},
                                                   {ScheduleKind::linear, "linear"},
                                                   {ScheduleKind::cosine, "cosine"},
                                                   {ScheduleKind::inverse_sqrt, "inverse-sqrt"}};
};

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

/// The rate of update t.
double learning_rate(const Schedule& schedule, int64_t t);

}  // namespace qkv
