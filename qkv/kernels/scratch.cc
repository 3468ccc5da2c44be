// A thread's blocks of working memory. Nothing here allocates in a destructor, and a failed allocation leaves it
// usable.
#include "qkv/kernels/scratch.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace qkv::kernels {
namespace {

constexpr int64_t kLeastBlock = 1 << 16;      // floats
constexpr int64_t kKeep = int64_t{64} << 20;  // floats beyond this (256 MiB) are given back

struct Block {
  Floats data;
  int64_t size = 0;
};
// In the order they fill up. Holds no results, only room.
struct Arena {
  std::vector<Block> blocks;
  size_t block = 0;
  int64_t used = 0;

  bool unused() const { return block == 0 && used == 0; }
  int64_t total() const {
    int64_t n = 0;
    for (const Block& b : blocks) n += b.size;
    return n;
  }
  void add(int64_t size) {
    blocks.reserve(blocks.size() + 1);
    blocks.push_back({new_floats(size), size});
  }
};
Arena& arena() {
  thread_local Arena instance;
  return instance;
}

}  // namespace

Floats new_floats(int64_t n) {
  constexpr auto kMost = static_cast<int64_t>(std::numeric_limits<ptrdiff_t>::max() / sizeof(float));
  if (n < 0 || n > kMost) throw std::bad_alloc();
  return Floats(new (std::align_val_t{64}) float[static_cast<size_t>(n)]);
}

void GrowingBuffer::grow(int64_t n) {
  size_ = 0;
  data_.reset();  // first, so that both are never held at once
  data_ = new_floats(n);
  size_ = n;
}

Scratch::Scratch() : block_(arena().block), used_(arena().used) {}

Scratch::~Scratch() {
  Arena& a = arena();
  a.block = block_;
  a.used = used_;
  if (a.unused() && a.total() > kKeep) a.blocks.clear();
}

float* Scratch::floats(int64_t n) {
  Arena& a = arena();
  if (n > std::numeric_limits<int64_t>::max() / 2) throw std::bad_alloc();
  const int64_t need = (n + 16 + 15) / 16 * 16;
  if (a.unused() && a.blocks.size() > 1) {
    // What took several blocks last time becomes one, so that it is found in one piece.
    const int64_t total = a.total();
    a.blocks.clear();
    a.add(total);
  }
  while (a.block < a.blocks.size() && need > a.blocks[a.block].size - a.used) {
    ++a.block;
    a.used = 0;
  }
  if (a.block == a.blocks.size()) a.add(std::max(need, kLeastBlock));
  float* p = a.blocks[a.block].data.get() + a.used;
  a.used += need;
  return p;
}

}  // namespace qkv::kernels
