// The reserve, given out by the handler that operator new calls when there is no memory.
#include "qkv/serve/reserve.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <new>
#include <thread>

namespace qkv::serve {
namespace {

constexpr size_t kReserve = 16 << 20;
std::atomic<void*> reserve{nullptr};

// operator new tries again when this returns.
void find_memory() {
  constexpr auto kPause = std::chrono::milliseconds(10);
  constexpr int kMostPauses = 2000;  // longer than any request
  thread_local int pauses = 0;
  if (std::uncaught_exceptions() == 0 || pauses == kMostPauses) {
    pauses = 0;
    throw std::bad_alloc();
  }
  if (void* const block = reserve.exchange(nullptr)) {
    std::free(block);
    return;
  }
  ++pauses;
  std::this_thread::sleep_for(kPause);
}

}  // namespace

void keep_reserve() {
  if (reserve.load(std::memory_order_relaxed) != nullptr) return;
  std::set_new_handler(&find_memory);
  std::free(reserve.exchange(std::malloc(kReserve)));
}

}  // namespace qkv::serve
