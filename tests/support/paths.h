// Where this build's fixtures and program are; one source file knows, so that the others compile alike in any folder.
#pragma once

#include <string>

namespace qkv::testing {

/// tests/fixtures of this checkout.
std::string fixtures();
/// The program under test; empty in a build without it.
std::string program();
/// What is preloaded into it to make calls fail.
std::string fault_library();

}  // namespace qkv::testing
