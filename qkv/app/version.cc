// qkv --version: what a report of a fault needs to name.
#include "qkv/version.h"

#include "commit.h"  // made by the build: cmake/commit.cmake
#include "qkv/app/command.h"
#include "qkv/kernels/simd_target.h"

namespace qkv::app {

std::string version_text() {
  return "qkv " QKV_VERSION " (" QKV_BUILD ", " + kernels::simd_target() + ", commit " QKV_COMMIT ")";
}

}  // namespace qkv::app
