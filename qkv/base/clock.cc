// The system's clocks of processor time.
#include "qkv/base/clock.h"

#include <ctime>

namespace qkv {
namespace {

double read(clockid_t clock) {
  timespec now{};
  if (clock_gettime(clock, &now) != 0) clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

double thread_seconds() { return read(CLOCK_THREAD_CPUTIME_ID); }
double process_seconds() { return read(CLOCK_PROCESS_CPUTIME_ID); }

}  // namespace qkv
