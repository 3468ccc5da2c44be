// Whether a launcher (mpirun, srun) started this process with others, and joining them.
#pragma once

#include <memory>

#include "qkv/dist/processes.h"

namespace qkv {

/// How many processes a launcher says it started; 1 without one.
int launched_processes();
/// Which of them this is, as the launcher says; 0 without one.
int launched_rank();
/// Joins them by the plugin libqkv_mpi.so, which is loaded here and nowhere else; null for a process alone. Throws
/// Error when there is no plugin or it is of another version.
std::unique_ptr<Processes> join_launched();

/// What the plugin has, under these names.
inline constexpr const char* kPluginFile = "libqkv_mpi.so";
inline constexpr const char* kPluginVersion = "qkv_mpi_version";  // const char* (): that of qkv it was built with
inline constexpr const char* kPluginJoin = "qkv_mpi_join";        // Processes* ()

}  // namespace qkv
