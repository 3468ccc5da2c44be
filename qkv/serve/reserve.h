// A reserve of memory for what must not fail while an exception for lack of memory passes.
#pragma once

namespace qkv::serve {

/// Allocates the reserve unless it is there. From the first call on, allocations made while an exception passes get it,
/// or wait for memory that other requests give back: destructors of JSON values allocate, and must not throw.
void keep_reserve();

}  // namespace qkv::serve
