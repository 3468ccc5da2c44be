// Chunks of a stream: all of it, every epoch otherwise.
#include "qkv/data/chunks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "qkv/base/rng.h"
#include "qkv/data/batching.h"

namespace qkv {
namespace {

using testing::message_of;

std::vector<Chunk> listed(const Chunks& chunks) {
  std::vector<Chunk> all;
  for (int64_t i = 0; i < chunks.size(); ++i) all.push_back(chunks[i]);
  return all;
}

std::vector<Chunk> epoch_of(int64_t tokens, int64_t block, uint64_t seed, int64_t epoch) {
  Chunks chunks(tokens, block, seed, epoch);
  chunks.shuffle(seed, epoch);
  return listed(chunks);
}

TEST(Chunks, CoverTheStream) {
  EXPECT_EQ(listed(Chunks(10, 4)), (std::vector<Chunk>{{0, 4}, {4, 8}, {8, 9}}));
  EXPECT_EQ(listed(Chunks(2, 100)), (std::vector<Chunk>{{0, 1}}));
  std::set<int64_t> firsts;
  for (int64_t epoch = 0; epoch < 30; ++epoch) {
    std::vector<Chunk> chunks = epoch_of(1000, 64, 5, epoch);
    EXPECT_EQ(chunks, epoch_of(1000, 64, 5, epoch));
    EXPECT_FALSE(std::is_sorted(chunks.begin(), chunks.end(), [](Chunk a, Chunk b) { return a.begin < b.begin; }));
    std::sort(chunks.begin(), chunks.end(), [](Chunk a, Chunk b) { return a.begin < b.begin; });
    EXPECT_EQ(chunks, listed(Chunks(1000, 64, 5, epoch)));
    firsts.insert(chunks[0].begin);
    EXPECT_LT(chunks[0].begin, 64);
    for (size_t i = 0; i + 1 < chunks.size(); ++i) EXPECT_EQ(chunks[i].end, chunks[i + 1].begin);
    EXPECT_EQ(chunks.back().end, 999);
  }
  EXPECT_GT(firsts.size(), 10u);
  EXPECT_EQ(epoch_of(2, 64, 1, 0).size(), 1u);
  EXPECT_NE(message_of<ConfigError>([] { Chunks(1, 4); }), "");
  EXPECT_NE(message_of<ConfigError>([] { Chunks(10, 0); }), "");
  EXPECT_NE(message_of<ConfigError>([] { Chunks(int64_t{1} << 40, 8); }).find("larger --block"), std::string::npos);
}

// The order belongs to a seed's bits: it is that of whole lists of chunks and of indices.
TEST(Chunks, OrderIsThatOfShuffledIndices) {
  const Chunks in_order(5000, 7, 3, 2);
  const std::vector<Chunk> plain = listed(in_order), shuffled = epoch_of(5000, 7, 3, 2);
  const std::vector<int64_t> order = shuffled_indices(in_order.size(), 3, 2);
  ASSERT_EQ(order.size(), shuffled.size());
  for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(shuffled[i], plain[static_cast<size_t>(order[i])]);
  Rng rng = Rng(3).fork(2);
  EXPECT_EQ(plain[0].begin, rng.below(7));
}

}  // namespace
}  // namespace qkv
