// Storage: memory of tensors, kept by size class so that each step reuses the last one's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace qkv {

/// A block of 64-byte aligned memory, taken from and returned to the process's cache of free blocks, or memory of
/// others.
class Storage {
 public:
  explicit Storage(size_t bytes);
  /// Memory of others: `release` runs once with `data`, here when the memory is no longer used.
  Storage(void* data, std::function<void(void*)> release);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() { return data_; }
  const void* data() const { return data_; }
  bool adopted() const { return adopted_; }

 private:
  void* data_;
  size_t size_class_ = 0;
  bool adopted_ = false;
  std::function<void(void*)> release_;
};

/// What tensors hold now, the most they held, and what the cache keeps for reuse, in bytes.
struct MemoryUse {
  int64_t live = 0, peak = 0, cached = 0;
  int64_t system_allocations = 0;  // how often the system was asked: constant from the second step on
};
/// The process's, now.
MemoryUse memory_use();
/// Gives every cached block back to the system.
void release_cached_memory();

}  // namespace qkv
