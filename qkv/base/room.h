// Whether the system still has memory to give.
#pragma once

#include <cstddef>

namespace qkv {

/// Whether the system would give this many bytes now. Asked before work that cannot stop halfway for lack of memory.
bool have_room(size_t bytes) noexcept;

}  // namespace qkv
