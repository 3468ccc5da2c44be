// qkv bench scale: the same updates on one process and on all that a launcher started.
#pragma once

#include "qkv/app/command.h"

namespace qkv::app {

/// What follows "bench scale". Returns the exit code.
int run_bench_scale(const Arguments& arguments);

}  // namespace qkv::app
