// The recording and its reverse run.
#include "qkv/core/autograd.h"

#include <atomic>
#include <map>

#include "qkv/base/budget.h"

namespace qkv {

// Tensor's private parts that the reverse run needs.
struct GradAccess {
  static Tensor& grad_of(const Tensor& leaf) { return leaf.impl_->grad; }
  static bool is_wanted_leaf(const Tensor& t) { return t.impl_->leaf_requires_grad; }
};

Tensor attach(const Tensor& out, std::shared_ptr<Node> node, int output_index) {
  // A new handle on the same numbers: the closure may hold `out` itself without holding its own node alive.
  Tensor t = out.detach();
  t.impl_->node = std::move(node);
  t.impl_->output_index = output_index;
  return t;
}

namespace {

thread_local bool recording = true;
std::atomic<uint64_t> next_order{1};

// A slot may share memory with a gradient handed to another input: make it safe to write into.
Tensor& own(Tensor& slot) {
  if (!slot.owns_memory_alone()) slot = slot.clone();
  return slot;
}

}  // namespace

bool grad_enabled() { return recording; }
NoGrad::NoGrad() : before_(recording) { recording = false; }
NoGrad::~NoGrad() { recording = before_; }

void Grads::add(size_t i, const Tensor& g) {
  if (!wants(i)) return;
  if (!(g.shape() == inputs_[i].shape())) {
    throw ShapeError("[backward] gradient " + g.shape().str() + " for input " + inputs_[i].shape().str());
  }
  Tensor& slot = *slots_[i];
  if (!slot.defined()) {
    slot = g.is_contiguous() ? g.detach() : g.clone();
  } else {
    own(slot).add_from(g);
  }
}

Tensor Grads::buffer(size_t i) {
  bool fresh = false;
  Tensor t = buffer(i, fresh);
  if (fresh) t.fill(0.0);
  return t;
}

Tensor Grads::buffer(size_t i, bool& fresh) {
  Tensor& slot = *slots_[i];
  fresh = !slot.defined();
  if (fresh) slot = Tensor::empty(inputs_[i].shape(), inputs_[i].dtype());
  return own(slot);
}

bool needs_record(const std::vector<Tensor>& inputs) {
  if (!recording) return false;
  for (const Tensor& t : inputs) {
    if (t.defined() && t.requires_grad()) return true;
  }
  return false;
}

namespace {

struct RecordedNode : Node {
  RecordedNode* next = nullptr;  // that waits to be freed
};

/// Frees a node. Those that its inputs held wait in a list instead of being freed inside it: a graph of a million ops
/// would not fit on the stack. Nothing is allocated.
void free_node(RecordedNode* node) noexcept {
  thread_local RecordedNode* waiting = nullptr;
  thread_local bool freeing = false;
  node->next = waiting;
  waiting = node;
  if (freeing) return;
  freeing = true;
  while (waiting != nullptr) {
    const std::unique_ptr<RecordedNode> first(waiting);
    waiting = first->next;
  }
  freeing = false;
}

}  // namespace

std::vector<Tensor> record(const char* op, const std::vector<Tensor>& outs, std::vector<Tensor> inputs,
                           BackwardFn backward) {
  check_budget();  // kernels leave their result unfinished when the time is up
  if (!needs_record(inputs)) return outs;
  const std::shared_ptr<RecordedNode> node(new RecordedNode, free_node);
  node->op = op;
  node->inputs = std::move(inputs);
  node->dtype = outs[0].dtype();
  node->backward = std::move(backward);
  node->order = next_order.fetch_add(1);
  std::vector<Tensor> attached;
  for (size_t i = 0; i < outs.size(); ++i) {
    node->output_shapes.push_back(outs[i].shape());
    attached.push_back(attach(outs[i], node, static_cast<int>(i)));
  }
  return attached;
}

Tensor record(const char* op, const Tensor& out, std::vector<Tensor> inputs,
              std::function<void(const Tensor& d_out, Grads& d)> backward) {
  check_budget();
  if (!needs_record(inputs)) return out;
  return record(op, std::vector<Tensor>{out}, std::move(inputs),
                [fn = std::move(backward)](const std::vector<Tensor>& d_outs, Grads& d) { fn(d_outs[0], d); })[0];
}

void backward(const std::vector<Tensor>& roots, const std::vector<Tensor>& d_roots) {
  NoGrad guard;
  // Pending gradients of each node's outputs; the largest order runs first, so all its users have run.
  struct Pending {
    std::shared_ptr<Node> node;
    std::vector<Tensor> d_outputs;
  };
  std::map<uint64_t, Pending, std::greater<>> pending;
  const auto slot_of = [&](const Tensor& t) -> Tensor* {
    if (!t.defined()) return nullptr;
    if (const std::shared_ptr<Node>& node = t.node()) {
      Pending& p = pending[node->order];
      if (!p.node) {
        p.node = node;
        p.d_outputs.resize(node->output_shapes.size());
      }
      return &p.d_outputs[static_cast<size_t>(t.output_index())];
    }
    return GradAccess::is_wanted_leaf(t) ? &GradAccess::grad_of(t) : nullptr;
  };

  for (size_t i = 0; i < roots.size(); ++i) {
    if (!roots[i].requires_grad()) throw Error("[backward] nothing was recorded for this tensor");
    if (!(roots[i].shape() == d_roots[i].shape())) {
      throw ShapeError("[backward] gradient " + d_roots[i].shape().str() + " for a tensor of shape " +
                       roots[i].shape().str());
    }
    Grads(roots,
          [&] {
            std::vector<Tensor*> slots(roots.size(), nullptr);
            slots[i] = slot_of(roots[i]);
            return slots;
          }())
        .add(i, d_roots[i]);
  }
  while (!pending.empty()) {
    Pending current = std::move(pending.begin()->second);
    pending.erase(pending.begin());
    std::vector<Tensor*> slots;
    for (const Tensor& input : current.node->inputs) slots.push_back(slot_of(input));
    Grads grads(current.node->inputs, std::move(slots));
    if (!current.node->backward) {
      throw Error(std::string("[") + current.node->op + "] backward ran twice; record the step again");
    }
    current.node->backward(current.d_outputs, grads);
    current.node->backward = nullptr;  // frees what the closure saved; the graph is used up
    current.node->inputs.clear();
  }
}

}  // namespace qkv
