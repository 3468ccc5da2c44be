// The sum of the gradients of an update's parts: one balanced tree over the parts, whichever process has which.
#pragma once

#include <vector>

#include "qkv/core/tensor.h"
#include "qkv/dist/processes.h"

namespace qkv {

/// Throws ConfigError unless `parts` is a power of two that this many processes can share.
void check_parts(int64_t parts, int processes);

/// ((g₀ + g₁) + (g₂ + g₃)) + …: addition commutes but does not associate, so the tree fixes the bits for any number of
/// processes. Process r of N has the parts stretch_of(parts, r, N); it sums the whole subtrees it has, and then each
/// process sums what is left of the tree for one Nth of the numbers: 2 (N-1)/N of the bytes go over the wire when N is
/// a power of two.
class TreeSum {
 public:
  /// `like` has the shapes of a part's tensors (f32). Throws what check_parts() does.
  TreeSum(Processes& processes, int64_t parts, const std::vector<Tensor>& like);

  Stretch own() const { return stretch_of(parts_, processes_.rank(), processes_.size()); }
  /// The tensors of the next part of this process, in order; undefined ones count as nothing. Takes their memory.
  void add(std::vector<Tensor> part);
  /// The sum over all parts, on all processes; undefined where no part has anything. Starts over.
  std::vector<Tensor> total();

 private:
  struct Node {  // the sum over parts [begin, end)
    int64_t begin = 0, end = 0;
    std::vector<Tensor> tensors;
  };
  struct Chunk;
  /// The subtrees that process r sums by itself, by their parts.
  std::vector<Stretch> subtrees_of(int r) const;
  /// The numbers that process r sums for all, of all tensors one after another.
  Stretch chunk_of(int r) const { return stretch_of(offsets_.back(), r, processes_.size()); }
  template <class Work>
  void each(Stretch numbers, const Work& work) const;
  /// The nodes' numbers in the order in which they go to the processes.
  Tensor packed_nodes() const;
  std::vector<Tensor> combined();

  Processes& processes_;
  int64_t parts_, next_;
  std::vector<Shape> shapes_;
  std::vector<int64_t> offsets_;  // where each tensor begins when all lie one after another, and the end
  std::vector<Node> nodes_;       // whole subtrees that are not siblings
};

}  // namespace qkv
