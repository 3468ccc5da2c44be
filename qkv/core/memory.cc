// The cache of free blocks: four size classes per octave, a free list each.
#include "qkv/core/memory.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <mutex>
#include <new>

#include "qkv/base/budget.h"
#include "qkv/base/parallel.h"
#include "qkv/base/room.h"

namespace qkv {
namespace {

constexpr size_t kAlign = 64;
constexpr size_t kLooser = 2;              // classes a block may be too large by
constexpr int64_t kAlwaysKept = 64 << 20;  // bytes
constexpr size_t kLeftToOthers = 32 << 20;

// Class c holds blocks of (4 + c % 4) << (c / 4) units of 64 bytes; the last ones are as large as memory can be.
constexpr size_t kClasses = size_t{4} * (std::numeric_limits<size_t>::digits - 9);
constexpr size_t class_bytes(size_t c) { return ((4 + c % 4) << (c / 4)) * kAlign; }

size_t class_of(size_t bytes) {
  if (bytes > class_bytes(kClasses - 1)) throw std::bad_alloc();
  const size_t units = (bytes + kAlign - 1) / kAlign;
  if (units <= 4) return 0;
  const size_t octave = static_cast<size_t>(std::bit_width(units - 1)) - 3;  // (4..7) << octave < units
  size_t c = octave * 4;
  while (class_bytes(c) < bytes) ++c;
  return c;
}

// A free block begins with the address of the next one of its class, so that giving one back needs no memory.
struct FreeBlock {
  FreeBlock* next;
};

struct Cache {
  std::mutex mutex;
  std::array<FreeBlock*, kClasses> free_blocks{};
  MemoryUse use;

  void* take(size_t c) {
    FreeBlock* block = free_blocks[c];
    free_blocks[c] = block->next;
    use.cached -= static_cast<int64_t>(class_bytes(c));
    return block;
  }
  void give_back(size_t c, void* block) {
    free_blocks[c] = new (block) FreeBlock{free_blocks[c]};
    use.cached += static_cast<int64_t>(class_bytes(c));
  }

  // Frees the largest blocks first until at most `most` bytes are kept.
  void release(int64_t most) {
    for (size_t c = free_blocks.size(); c-- > 0;) {
      while (free_blocks[c] && use.cached > most) ::operator delete (take(c), std::align_val_t{kAlign});
    }
  }

  // A free block of at least this class, at most half as large again; its class, or none.
  size_t fitting(size_t size_class) const {
    const size_t end = std::min(size_class + kLooser + 1, free_blocks.size());
    for (size_t c = size_class; c < end; ++c) {
      if (free_blocks[c]) return c;
    }
    return free_blocks.size();
  }
};

Cache& cache() {
  static Cache* c = [] {
    auto* made = new Cache;  // never destroyed: tensors may outlive static destructors
    detail::at_fork([] { cache().mutex.lock(); }, [] { cache().mutex.unlock(); }, [] { cache().mutex.unlock(); });
    return made;
  }();
  return *c;
}

// When the system has no more, the cache gives back what it keeps. Tensors under a budget leave room for the rest of
// their process, which may not be able to fail.
void* from_system(Cache& c, size_t bytes) {
  const auto room = [&] { return current_budget() == nullptr || have_room(bytes + kLeftToOthers); };
  if (room()) {
    void* block = ::operator new (bytes, std::align_val_t{kAlign}, std::nothrow);
    if (block) return block;
  }
  c.release(0);
  if (!room()) throw std::bad_alloc();
  return ::operator new (bytes, std::align_val_t{kAlign});
}

}  // namespace

Storage::Storage(size_t bytes) : data_(nullptr), size_class_(class_of(bytes)) {
  Cache& c = cache();
  std::lock_guard lock(c.mutex);
  const size_t found = c.fitting(size_class_);
  if (found < c.free_blocks.size()) size_class_ = found;
  const auto block = static_cast<int64_t>(class_bytes(size_class_));
  check_budget(c.use.live + block);
  if (found < c.free_blocks.size()) {
    data_ = c.take(found);
  } else {
    // Batches of ever new shapes must not leave blocks of every class behind: all together stay near the peak.
    c.release(std::max(kAlwaysKept, c.use.peak + c.use.peak / 8 - c.use.live - block));
    data_ = from_system(c, static_cast<size_t>(block));
    ++c.use.system_allocations;
  }
  c.use.live += block;
  if (c.use.live > c.use.peak) c.use.peak = c.use.live;
}

Storage::Storage(void* data, std::function<void(void*)> release)
    : data_(data), adopted_(true), release_(std::move(release)) {}

Storage::~Storage() {
  if (adopted_) {
    if (release_) release_(data_);
    return;
  }
  const auto block = static_cast<int64_t>(class_bytes(size_class_));
  Cache& c = cache();
  std::lock_guard lock(c.mutex);
  c.give_back(size_class_, data_);
  c.use.live -= block;
}

MemoryUse memory_use() {
  std::lock_guard lock(cache().mutex);
  return cache().use;
}

void release_cached_memory() {
  std::lock_guard lock(cache().mutex);
  cache().release(0);
}

}  // namespace qkv
