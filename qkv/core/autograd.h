// Reverse-mode differentiation: ops record what they did, backward() runs it in reverse.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "qkv/core/tensor.h"

namespace qkv {

class Grads;
/// Called with the gradient of each output (undefined where none arrived); adds to the inputs' gradients.
using BackwardFn = std::function<void(const std::vector<Tensor>& d_outputs, Grads& d)>;

/// One recorded op.
struct Node {
  const char* op = "";
  std::vector<Tensor> inputs;
  std::vector<Shape> output_shapes;
  DType dtype = DType::f32;
  BackwardFn backward;
  uint64_t order = 0;  // grows with time: a node's inputs have smaller numbers
};

/// Where a backward function puts the gradients of its op's inputs.
class Grads {
 public:
  Grads(const std::vector<Tensor>& inputs, std::vector<Tensor*> slots) : inputs_(inputs), slots_(std::move(slots)) {}

  /// Whether input i needs a gradient: skip the work otherwise.
  bool wants(size_t i) const { return slots_[i] != nullptr; }
  /// Adds g (of input i's shape) to its gradient. g's memory may be taken over.
  void add(size_t i, const Tensor& g);
  /// The buffer of input i's gradient for ops that add into it themselves: contiguous, zeroed if new.
  Tensor buffer(size_t i);
  /// The same without zeroing: `fresh` says whether it must be written (true) or added to (false).
  Tensor buffer(size_t i, bool& fresh);

 private:
  const std::vector<Tensor>& inputs_;
  std::vector<Tensor*> slots_;
};

/// Whether ops record now (per thread).
bool grad_enabled();
/// Ops inside the guard's life are not recorded.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};

/// Whether an op of these inputs must be recorded.
bool needs_record(const std::vector<Tensor>& inputs);

/// Returns `out` as the result of `op`, to be differentiated by `backward`; plain `out` when nothing needs it.
/// Undefined inputs are allowed (optional arguments) and never want a gradient.
Tensor record(const char* op, const Tensor& out, std::vector<Tensor> inputs,
              std::function<void(const Tensor& d_out, Grads& d)> backward);
/// The same for ops with several results.
std::vector<Tensor> record(const char* op, const std::vector<Tensor>& outs, std::vector<Tensor> inputs,
                           BackwardFn backward);

/// Runs everything that led to `roots` in reverse, starting from the given gradients; leaves collect
/// theirs in grad(). The recording is used up: its memory is freed on the way.
void backward(const std::vector<Tensor>& roots, const std::vector<Tensor>& d_roots);

}  // namespace qkv
