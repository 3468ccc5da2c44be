// The variables that launchers set, and the plugin that speaks MPI.
#include "qkv/dist/launch.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "qkv/base/error.h"
#include "qkv/version.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

int number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? 0 : std::atoi(text);
}

/// Beside the program, or where it is installed.
std::string plugin_path() {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& path : {folder / kPluginFile, folder / ".." / QKV_PLUGIN_FOLDER / kPluginFile}) {
    if (fs::exists(path, error)) return path.string();
  }
  return kPluginFile;
}

}  // namespace

int launched_processes() {
  // Of Slurm, the number of the step: that of the job is set for the batch script too, which runs alone.
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    if (const int n = number_in(variable); n > 0) return n;
  }
  return 1;
}

int launched_rank() {
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"}) {
    if (std::getenv(variable) != nullptr) return number_in(variable);
  }
  return 0;
}

std::unique_ptr<Processes> join_launched() {
  const int n = launched_processes();
  // A launcher of PMIx alone says which process this is, but not of how many.
  if (n == 1 && (std::getenv("PMIX_RANK") == nullptr || std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr)) return nullptr;
  const std::string path = plugin_path();
  void* const plugin = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (plugin == nullptr) {
    throw Error("started as one of " + std::to_string(n) + " processes, but MPI cannot be loaded (" + dlerror() +
                "); build it with './run --with-mpi --version' or start qkv without a launcher");
  }
  const auto version = reinterpret_cast<const char* (*)()>(dlsym(plugin, kPluginVersion));
  const auto join = reinterpret_cast<Processes* (*)()>(dlsym(plugin, kPluginJoin));
  if (version == nullptr || join == nullptr || std::string(version()) != QKV_VERSION) {
    throw Error(path + " is not of this version of qkv, " QKV_VERSION "; build both together");
  }
  return std::unique_ptr<Processes>(join());
}

}  // namespace qkv
