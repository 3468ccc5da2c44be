// The paths that CMake hands to the tests.
#include "support/paths.h"

namespace qkv::testing {

std::string fixtures() { return QKV_FIXTURES; }
std::string program() { return QKV_PROGRAM; }
std::string fault_library() { return QKV_FAULT_LIBRARY; }

}  // namespace qkv::testing
