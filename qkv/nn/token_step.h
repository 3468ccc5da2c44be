// One more token for every row of a causal stack: what decoding costs. No graph, no tensors in between, no memory asked
// for; a token is one meeting of the threads.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "qkv/kernels/attention/attention.h"
#include "qkv/kernels/gemm/gemm.h"
#include "qkv/kernels/rowwise.h"
#include "qkv/nn/transformer.h"

namespace qkv {

/// Steps of a stack and of the product that makes scores of its hidden rows. Stack, product and memory must outlive it.
///
///     y = norm(x);  q, k, v = W y;  k and v go into the cache;  x += W_o attention;  …;  scores = W_head norm(x)
///
/// is a list of phases, made once for a number of rows: products, norms and attention, each cut into tasks.
class TokenStep {
 public:
  /// Null where the stack is none that it knows: f32, a last norm, multi-head self-attention with softmax, memories
  /// with plain scores. TransformerStack::extend() then serves.
  static std::unique_ptr<TokenStep> make(const TransformerStack& stack, const Tensor& head_weight,
                                         const Tensor& head_bias, const MemoryPlans& memory = {});

  /// Where the next tokens' embeddings go, [rows, width].
  float* input(int64_t rows);
  /// Adds those tokens to the cache's rows → scores of what comes next, [rows, V]. sequences[r] is the one of the
  /// memory that row r attends to; empty without a memory. The same bits for any number of threads.
  Tensor run(StackCache& cache, std::span<const int64_t> sequences = {});

 private:
  enum class Kind : uint8_t { product, norm, self, memory };
  struct Phase {
    Kind kind;
    size_t layer = 0;
    kernels::GemmArgs product = {};
    kernels::LayerNorm<float> norm = {};
  };

  TokenStep(const TransformerStack& stack, const Tensor& head_weight, const Tensor& head_bias,
            const MemoryPlans& memory)
      : stack_(stack), head_weight_(head_weight), head_bias_(head_bias), memory_(memory) {}
  bool knows_all();
  void plan();
  void plan_layer(size_t l, const float*& from);
  void add_product(const float* x, const Tensor& weight, const Tensor& bias, float* y, Act act = Act::none);
  void add_norm(const LayerNorm& norm, bool joins);
  void reach(int64_t positions);
  void make_room(StackCache& cache);
  int64_t tasks_of(const Phase& phase, int64_t threads) const;
  void run_task(const Phase& phase, int64_t task, int64_t tasks) const;
  void attend_self(size_t layer, int64_t row, int64_t kv) const;
  void attend_memory(size_t layer, int64_t row, int64_t kv) const;

  const TransformerStack& stack_;
  const Tensor head_weight_, head_bias_;
  const MemoryPlans& memory_;
  std::vector<JointParts> self_;  // of each layer

  std::vector<Phase> phases_;
  std::vector<int64_t> tasks_;
  int64_t rows_ = 0, most_rows_ = 0, wide_ = 0;  // wide_: columns of projected_ and context_
  Tensor block_;                                 // of the buffers below, a matrix of most_rows_ rows each
  float *stream_ = nullptr, *normed_ = nullptr, *added_ = nullptr, *projected_ = nullptr, *context_ = nullptr,
        *inner_ = nullptr, *input_ = nullptr;
  Tensor scores_;
  int64_t reached_ = 0;          // positions in the tables
  Tensor turns_, bias_;          // cos and sin of each position [n, D]; biases of the last of n keys' query, [H, n]
  StackCache* cache_ = nullptr;  // of the step that runs
  std::span<const int64_t> sequences_;  // of the step that runs
  std::vector<float*> places_;          // where each layer and row keeps its new token
};

}  // namespace qkv
