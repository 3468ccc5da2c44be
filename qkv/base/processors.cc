// What affinity and control groups leave of the machine.
#include "qkv/base/processors.h"

#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>

namespace qkv {
namespace {

// The lowest limit of processor time that Linux's control groups (version 2) set, from this process's group up; 0:
// none.
int processors_of_groups() {
  std::ifstream membership("/proc/self/cgroup");
  std::string line, group;
  while (std::getline(membership, line)) {
    if (line.starts_with("0::")) group = line.substr(3);
  }
  double least = 0;
  for (; !group.empty(); group.resize(group.size() > 1 ? std::max<size_t>(group.rfind('/'), 1) : 0)) {
    std::ifstream limit("/sys/fs/cgroup" + group + "/cpu.max");
    double quota = 0, period = 0;
    if (!(limit >> quota >> period) || period <= 0) continue;  // "max" is no number
    const double here = quota / period;
    least = least == 0 ? here : std::min(least, here);
  }
  return static_cast<int>(std::ceil(least));
}

}  // namespace

int usable_processors() {
  int affine = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
#if defined(__linux__)
  if (cpu_set_t set; sched_getaffinity(0, sizeof set, &set) == 0) affine = std::max(1, CPU_COUNT(&set));
#endif
  const int granted = processors_of_groups();
  return granted > 0 ? std::min(affine, granted) : affine;
}

}  // namespace qkv
