// The cache of free blocks: four size classes an octave, a free list each.
#include "qkv/core/memory.h"

#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

namespace qkv {
namespace {

constexpr size_t kAlign = 64;

// Class c holds blocks of (4 + c % 4) << (c / 4) units of 64 bytes.
size_t class_bytes(size_t c) { return ((4 + c % 4) << (c / 4)) * kAlign; }

size_t class_of(size_t bytes) {
  const size_t units = (bytes + kAlign - 1) / kAlign;
  if (units <= 4) return 0;
  const size_t octave = static_cast<size_t>(std::bit_width(units - 1)) - 3;  // (4..7) << octave < units
  size_t c = octave * 4;
  while (class_bytes(c) < bytes) ++c;
  return c;
}

struct Cache {
  std::mutex mutex;
  std::array<std::vector<void*>, 256> free_blocks;
  MemoryUse use;

  void release() {
    for (size_t c = 0; c < free_blocks.size(); ++c) {
      for (void* p : free_blocks[c]) std::free(p);
      free_blocks[c].clear();
    }
    use.cached = 0;
  }
};

Cache& cache() {
  static Cache* c = new Cache;  // never destroyed: tensors may outlive static destructors
  return *c;
}

}  // namespace

Storage::Storage(size_t bytes) : data_(nullptr), size_class_(class_of(bytes)) {
  const auto block = static_cast<int64_t>(class_bytes(size_class_));
  Cache& c = cache();
  std::lock_guard lock(c.mutex);
  auto& list = c.free_blocks[size_class_];
  if (!list.empty()) {
    data_ = list.back();
    list.pop_back();
    c.use.cached -= block;
  } else {
    data_ = std::aligned_alloc(kAlign, static_cast<size_t>(block));
    if (data_ == nullptr) throw std::bad_alloc();
    ++c.use.system_allocations;
  }
  c.use.live += block;
  if (c.use.live > c.use.peak) c.use.peak = c.use.live;
}

Storage::~Storage() {
  const auto block = static_cast<int64_t>(class_bytes(size_class_));
  Cache& c = cache();
  std::lock_guard lock(c.mutex);
  c.free_blocks[size_class_].push_back(data_);
  c.use.live -= block;
  c.use.cached += block;
}

MemoryUse memory_use() {
  std::lock_guard lock(cache().mutex);
  return cache().use;
}

void reset_peak_memory() {
  std::lock_guard lock(cache().mutex);
  cache().use.peak = cache().use.live;
}

void release_cached_memory() {
  std::lock_guard lock(cache().mutex);
  cache().release();
}

}  // namespace qkv
