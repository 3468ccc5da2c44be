// Asks by mapping memory that is never touched.
#include "qkv/base/room.h"

#include <sys/mman.h>

namespace qkv {

bool have_room(size_t bytes) noexcept {
  void* const probe = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (probe == MAP_FAILED) return false;
  ::munmap(probe, bytes);
  return true;
}

}  // namespace qkv
