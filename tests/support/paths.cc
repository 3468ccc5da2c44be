// The paths that CMake hands to the tests.
#include "support/paths.h"

namespace qkv::testing {

std::string fixtures() { return QKV_FIXTURES; }
std::string program() { return QKV_PROGRAM; }

}  // namespace qkv::testing
