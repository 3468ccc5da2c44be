// Subtrees inside a process, then one stretch of the numbers for each process.
#include "qkv/dist/tree_sum.h"

#include <algorithm>
#include <utility>

#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "qkv/dist/pack.h"

namespace qkv {
namespace {

constexpr int64_t kBlock = 1 << 15;  // numbers a thread adds at a time

void add_numbers(float* to, const float* from, int64_t n) {
  parallel_blocks(n, kBlock, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] += from[i];
  });
}

/// terms[0] + (terms[1] + (… + terms[last])) into terms[0], in one pass over the memory.
void add_terms(const std::vector<float*>& terms, int64_t n) {
  parallel_blocks(n, kBlock, [&](int64_t begin, int64_t end) {
    constexpr int64_t kCached = 2048;
    float sum[kCached];
    for (; begin < end; begin += kCached) {
      const int64_t count = std::min(kCached, end - begin);
      std::copy_n(terms.back() + begin, count, sum);
      for (size_t k = terms.size() - 1; k-- > 0;) {
        const float* const term = terms[k] + begin;
        for (int64_t i = 0; i < count; ++i) sum[i] += term[i];
      }
      std::copy_n(sum, count, terms[0] + begin);
    }
  });
}

/// Sums the tensors of the nodes from the last to `first` into those of `first`.
template <class Node>
void merge_from(std::vector<Node>& nodes, size_t first) {
  for (size_t t = 0; t < nodes[first].tensors.size(); ++t) {
    std::vector<Tensor> there;  // what a part does not have is no term
    for (size_t k = first; k < nodes.size(); ++k) {
      Tensor& tensor = nodes[k].tensors[t];
      if (tensor.defined()) there.push_back(std::exchange(tensor, Tensor()));
    }
    if (there.empty()) continue;
    if (there.size() > 1) {
      if (!there[0].owns_memory_alone()) there[0] = there[0].clone();
      std::vector<float*> terms;
      for (Tensor& tensor : there) terms.push_back(tensor.f32());
      add_terms(terms, there[0].numel());
    }
    nodes[first].tensors[t] = there[0];
  }
}

bool siblings(int64_t begin, int64_t middle, int64_t end) {
  const int64_t n = middle - begin;
  return end - middle == n && begin % (2 * n) == 0;
}

}  // namespace

/// One stretch of the numbers of all subtrees, on the process that sums it.
struct TreeSum::Chunk {
  std::vector<Stretch> subtrees;            // by their parts, in order
  std::vector<float*> numbers;              // of each
  std::vector<std::vector<uint8_t>> there;  // of each, by tensor: whether it has any

  /// The sum over parts [begin, end) of the `n` numbers from `at` on, which belong to tensor t; null: nothing is there.
  float* sum(Stretch parts, size_t t, int64_t at, int64_t n) {
    for (size_t k = 0; k < subtrees.size(); ++k) {
      if (subtrees[k].begin == parts.begin && subtrees[k].end == parts.end) {
        return there[k][t] != 0 ? numbers[k] + at : nullptr;
      }
    }
    const int64_t middle = (parts.begin + parts.end) / 2;
    float* const left = sum({parts.begin, middle}, t, at, n);
    const float* const right = sum({middle, parts.end}, t, at, n);
    if (left == nullptr) return const_cast<float*>(right);
    if (right != nullptr) add_numbers(left, right, n);
    return left;
  }
};

void check_parts(int64_t parts, int processes) {
  if (parts < 1 || (parts & (parts - 1)) != 0) {
    throw ConfigError("--parts: " + std::to_string(parts) + " is not a power of two");
  }
  if (processes <= parts) return;
  throw ConfigError("--parts " + std::to_string(parts) + " can be shared by at most " + std::to_string(parts) +
                    (parts == 1 ? " process" : " processes") + ", and " + std::to_string(processes) +
                    " were started; start fewer, or a new run with more --parts");
}

TreeSum::TreeSum(Processes& processes, int64_t parts, const std::vector<Tensor>& like)
    : processes_(processes), parts_(parts), next_(own().begin), offsets_{0} {
  check_parts(parts, processes.size());
  for (const Tensor& t : like) {
    shapes_.push_back(t.shape());
    offsets_.push_back(offsets_.back() + t.numel());
  }
}

void TreeSum::add(std::vector<Tensor> part) {
  nodes_.push_back({next_, next_ + 1, std::move(part)});
  ++next_;
  size_t first = nodes_.size() - 1;  // of the nodes that end here and are one subtree
  while (first > 0 && siblings(nodes_[first - 1].begin, nodes_[first - 1].end, next_)) --first;
  merge_from(nodes_, first);
  nodes_[first].end = next_;
  nodes_.resize(first + 1);
}

std::vector<Tensor> TreeSum::total() {
  next_ = own().begin;
  if (processes_.size() > 1) return combined();
  std::vector<Tensor> sum = std::move(nodes_.front().tensors);
  nodes_.clear();
  return sum;
}

std::vector<Stretch> TreeSum::subtrees_of(int r) const {
  const Stretch mine = stretch_of(parts_, r, processes_.size());
  std::vector<Stretch> trees;
  for (int64_t begin = mine.begin; begin < mine.end;) {
    int64_t n = 1;
    while (begin % (2 * n) == 0 && begin + 2 * n <= mine.end) n *= 2;
    trees.push_back({begin, begin + n});
    begin += n;
  }
  return trees;
}

/// Calls work(tensor, first number, how many) for each tensor's part of a stretch of the numbers.
template <class Work>
void TreeSum::each(Stretch s, const Work& work) const {
  for (size_t t = 0; t < shapes_.size(); ++t) {
    const int64_t begin = std::max(s.begin, offsets_[t]), end = std::min(s.end, offsets_[t + 1]);
    if (begin < end) work(t, begin, end - begin);
  }
}

Tensor TreeSum::packed_nodes() const {
  Tensor out = Tensor::empty({static_cast<int64_t>(nodes_.size()) * offsets_.back()});
  float* to = out.f32();
  for (int r = 0; r < processes_.size(); ++r) {
    for (const Node& node : nodes_) {
      each(chunk_of(r), [&](size_t t, int64_t at, int64_t n) {
        if (node.tensors[t].defined()) std::copy_n(node.tensors[t].f32() + (at - offsets_[t]), n, to);
        to += n;
      });
    }
  }
  return out;
}

std::vector<Tensor> TreeSum::combined() {
  const Stretch mine = chunk_of(processes_.rank());
  const int64_t own = mine.end - mine.begin;
  std::vector<std::vector<uint8_t>> here;  // by subtree and tensor
  for (const Node& node : nodes_) {
    here.emplace_back();
    for (const Tensor& t : node.tensors) here.back().push_back(t.defined() ? 1 : 0);
  }
  const std::vector<std::string> masks = processes_.gather(packed(here));
  Chunk chunk;
  std::vector<int64_t> give, take, counts;
  for (int r = 0; r < processes_.size(); ++r) {
    for (auto& mask : unpacked<std::vector<std::vector<uint8_t>>>(masks[static_cast<size_t>(r)])) {
      chunk.there.push_back(std::move(mask));
    }
    const std::vector<Stretch> trees = subtrees_of(r);
    chunk.subtrees.insert(chunk.subtrees.end(), trees.begin(), trees.end());
    counts.push_back(chunk_of(r).end - chunk_of(r).begin);
    give.push_back(static_cast<int64_t>(nodes_.size()) * counts.back());
    take.push_back(static_cast<int64_t>(trees.size()) * own);
  }
  const Tensor out = packed_nodes();
  nodes_.clear();
  Tensor in = Tensor::empty({static_cast<int64_t>(chunk.subtrees.size()) * own});
  processes_.exchange({out.f32(), static_cast<size_t>(out.numel())}, give, {in.f32(), static_cast<size_t>(in.numel())},
                      take);
  for (size_t k = 0; k < chunk.subtrees.size(); ++k) chunk.numbers.push_back(in.f32() + static_cast<int64_t>(k) * own);
  Tensor all = Tensor::empty({offsets_.back()});
  each(mine, [&](size_t t, int64_t at, int64_t n) {
    const float* const sum = chunk.sum({0, parts_}, t, at - mine.begin, n);
    if (sum != nullptr) std::copy_n(sum, n, all.f32() + at);
  });
  processes_.complete({all.f32(), static_cast<size_t>(all.numel())}, counts);
  std::vector<Tensor> sum(shapes_.size());
  for (size_t t = 0; t < sum.size(); ++t) {
    const bool there =
        std::any_of(chunk.there.begin(), chunk.there.end(), [&](const auto& mask) { return mask[t] != 0; });
    if (there) sum[t] = all.as_strided(shapes_[t], shapes_[t].contiguous_strides(), offsets_[t]);
  }
  return sum;
}

}  // namespace qkv
