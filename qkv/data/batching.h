// Batches of sequences without padding: grouped by length, filled by token count, shuffled by (seed, epoch).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace qkv {

/// Sequences one after another: sequence i is ids[offsets[i] .. offsets[i+1]).
struct RaggedIds {
  std::vector<int64_t> ids;            // [T]
  std::vector<int64_t> offsets = {0};  // [N+1], offsets[0] = 0

  int64_t size() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t tokens() const { return offsets.back(); }
  int64_t length(int64_t i) const { return offsets[static_cast<size_t>(i) + 1] - offsets[static_cast<size_t>(i)]; }
  std::span<const int64_t> operator[](int64_t i) const {
    return std::span(ids).subspan(static_cast<size_t>(offsets[static_cast<size_t>(i)]), static_cast<size_t>(length(i)));
  }
  void push_back(std::span<const int64_t> sequence);
};

/// The chosen sequences of `all`, in the order of `indices`.
RaggedIds gather(const RaggedIds& all, std::span<const int64_t> indices);

struct BatchPlan {
  int64_t tokens = 4096;     // a batch holds at most this many, but always at least one example
  int64_t max_examples = 0;  // and at most this many examples; 0: any number
  int64_t pool = 0;          // examples of similar length are sought among this many neighbours; 0: the whole set
};

/// Cuts one epoch into batches of example indices. Example i costs costs[i] tokens (for a pair: source + target; its
/// own ids fill a batch, there is no padding to count) and is in exactly one batch. The examples are shuffled, sorted
/// by length inside each pool (equal lengths stay shuffled), cut into batches, and the batches are shuffled: all by
/// (seed, epoch) alone. Throws ConfigError when tokens < 1.
std::vector<std::vector<int64_t>> plan_batches(std::span<const int64_t> costs, const BatchPlan& plan, uint64_t seed,
                                               int64_t epoch);
/// The same without any shuffling, for validation and decoding: longest first, so that the first batch shows the
/// memory needed.
std::vector<std::vector<int64_t>> plan_batches_in_order(std::span<const int64_t> costs, const BatchPlan& plan);

/// Group `part` when the examples 0 … n-1 of a batch are divided into `parts` groups: from the longest to the shortest,
/// each joins the group that has the fewest tokens so far. Ascending; empty when there are fewer examples than groups.
std::vector<int64_t> balanced_part(std::span<const int64_t> costs, int64_t part, int64_t parts);

/// A permutation of 0 … n-1 that depends on (seed, stream) alone; the same one as uint32_t.
template <class Index = int64_t>
std::vector<Index> shuffled_indices(int64_t n, uint64_t seed, uint64_t stream);

}  // namespace qkv
