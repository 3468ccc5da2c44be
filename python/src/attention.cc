// qkv.attention and its gradient, weights and statistics.
#include "parts.h"

#include <pybind11/stl.h>

#include <array>

#include "errors.h"
#include "qkv/core/autograd.h"
#include "qkv/ops/attention_pass.h"
#include "qkv/ops/ops.h"
#include "rule.h"
#include "torch_tensors.h"

namespace qkv::python {
namespace {

using Release = py::gil_scoped_release;

// [L, D] as a batch of one; others as they are.
Tensor lifted(const Tensor& t) {
  if (!t.defined() || t.rank() != 2) return t;
  return t.as_strided({1, t.dim(0), t.dim(1)}, {0, t.strides()[0], t.strides()[1]}, t.storage_offset());
}

// The same numbers without axis `axis`, which has size 1.
Tensor without_axis(const Tensor& t, int axis) {
  Shape shape, strides;
  for (int i = 0; i < t.rank(); ++i) {
    if (i == axis) continue;
    shape.push_back(t.dim(i));
    strides.push_back(t.strides()[i]);
  }
  return t.as_strided(shape, strides, t.storage_offset());
}

// Gives results the axes of the queries: no heads where q had none, no batch where q was one matrix.
Tensor with_axes_of_q(Tensor t, int rank, bool heads, bool packed) {
  if (packed) return t;
  if (heads && rank < 4) t = without_axis(t, 1);
  return rank == 2 ? without_axis(t, 0) : t;
}

// The arguments of one call.
struct Call {
  Borrowed arrays;
  ScoreRule rule;
  Tensor q, k, v;
  int rank = 0;

  Call(const py::object& q_in, const py::object& k_in, const py::object& v_in, const py::tuple& rule_in)
      : rule(rule_of(rule_in, arrays)),
        q(arrays.tensor(q_in, "q")),
        k(arrays.tensor(k_in, "k")),
        v(arrays.optional(v_in, "v")) {
    lift();
  }
  // inputs: q, k, v, bias, additive.
  Call(const py::tuple& inputs, const ScoreRule& rule_in)
      : rule(rule_in),
        q(arrays.tensor(inputs[0], "q")),
        k(arrays.tensor(inputs[1], "k")),
        v(arrays.tensor(inputs[2], "v")) {
    rule.bias = arrays.optional(inputs[3], "bias");
    rule.additive = arrays.optional(inputs[4], "additive");
    lift();
  }
  void lift() {
    rank = q.rank();
    if (k.rank() == rank && (!v.defined() || v.rank() == rank)) {
      q = lifted(q);
      k = lifted(k);
      v = lifted(v);
    }
  }
  // An array with the axes of the caller's q, such as d_out, with those of q here.
  Tensor like_q(const Tensor& t) const { return rank == 2 ? lifted(t) : t; }
  bool packed() const { return !rule.q_offsets.empty() || !rule.k_offsets.empty(); }
  py::array result(const Tensor& t, bool heads = false) const {
    return to_numpy(with_axes_of_q(t, rank, heads, packed()), arrays.half());
  }
  py::object tensor_of_result(const Tensor& t) const { return to_torch(with_axes_of_q(t, rank, false, packed())); }
};

py::array attend(const py::object& q, const py::object& k, const py::object& v, const py::tuple& rule) {
  const Call call(q, k, v, rule);
  Tensor out;
  {
    const Release release;
    const NoGrad no_grad;
    out = attention(call.q, call.k, call.v, call.rule);
  }
  return call.result(out);
}

// Rows that do not lie side by side are copied here.
AttentionPass pass_of(const Call& call) {
  const Release release;
  return {call.q, call.k, call.v, call.rule};
}

// q, k, v, bias, additive.
constexpr size_t kInputs = 5;

// The gradients that are wanted of what was given.
std::array<Tensor, kInputs> gradients(const AttentionPass& pass, const Tensor& d_out,
                                      const std::array<bool, kInputs>& wanted) {
  if (!(d_out.shape() == pass.out.shape()) || d_out.dtype() != pass.out.dtype()) {
    throw ShapeError("[attention] d_out is " + std::string(name_of(d_out.dtype())) + " " + d_out.shape().str() +
                     "; expected the result's " + name_of(pass.out.dtype()) + " " + pass.out.shape().str());
  }
  const Release release;
  const Tensor* const inputs[] = {&pass.q, &pass.k, &pass.v, &pass.rule.bias, &pass.rule.additive};
  std::array<Tensor, kInputs> grads;
  for (size_t i = 0; i < kInputs; ++i) {
    if (!wanted[i] || !inputs[i]->defined()) continue;
    grads[i] = i < 3 ? Tensor::empty(inputs[i]->shape(), inputs[i]->dtype())
                     : Tensor::zeros(inputs[i]->shape(), inputs[i]->dtype());
  }
  pass.backward(d_out, {grads[0], grads[1], grads[2], grads[3], grads[4]});
  return grads;
}

py::tuple attend_and_differentiate(const py::object& d_out, const py::object& q, const py::object& k,
                                   const py::object& v, const py::tuple& rule) {
  Call call(q, k, v, rule);
  const Tensor d = call.like_q(call.arrays.tensor(d_out, "d_out"));
  AttentionPass pass = pass_of(call);
  {
    const Release release;
    pass.forward(true);
  }
  const auto grads = gradients(pass, d, {true, true, true, true, true});
  py::tuple out(kInputs);
  for (size_t i = 0; i < kInputs; ++i) {
    out[i] = !grads[i].defined() ? py::object(py::none())
             : i < 3             ? py::object(call.result(grads[i]))
                                 : py::object(to_numpy(grads[i], call.arrays.half()));
  }
  return out;
}

// For an autograd of others: a rule that was read once, without the arrays that have gradients.
struct Rule {
  explicit Rule(const py::tuple& values) {
    Borrowed arrays;
    rule = rule_of(values, arrays);
    rule.bias = rule.additive = Tensor();
  }
  ScoreRule rule;
};

// The number per row that a backward pass needs, as the forward pass left it.
struct Rows {
  Tensor lse;
};

// inputs: q, k, v, bias, additive, tensors of PyTorch. Gives the result, and with `keep` what backward takes.
py::object forward(const py::tuple& inputs, const Rule& rule, bool keep) {
  const Call call(inputs, rule.rule);
  AttentionPass pass = pass_of(call);
  {
    const Release release;
    pass.forward(keep);
  }
  py::object out = call.tensor_of_result(pass.out);
  return keep ? py::make_tuple(out, Rows{pass.lse}) : out;
}

// saved: the inputs and the result. Gives the gradients of those that need one, None for the others and for the rule.
py::tuple backward(const py::object& d_out, const py::tuple& saved, const Rows& rows, const Rule& rule,
                   const py::tuple& needed) {
  Call call(saved, rule.rule);
  AttentionPass pass = pass_of(call);
  const Tensor d = call.like_q(call.arrays.tensor(d_out, "d_out"));
  pass.out = call.like_q(call.arrays.tensor(saved[kInputs], "out"));
  pass.lse = rows.lse;
  std::array<bool, kInputs> wanted{};
  for (size_t i = 0; i < kInputs; ++i) wanted[i] = needed[i].ptr() == Py_True;
  const auto grads = gradients(pass, d, wanted);
  py::tuple out(kInputs + 1);
  for (size_t i = 0; i <= kInputs; ++i) {
    out[i] = i == kInputs || !grads[i].defined() ? py::object(py::none())
             : i < 3                             ? call.tensor_of_result(grads[i])
                                                 : to_torch(grads[i]);
  }
  return out;
}

py::array weights(const py::object& q, const py::object& k, const py::tuple& rule, const py::object& stage) {
  const Call call(q, k, py::none(), rule);
  const ScoreStage which = parse<ScoreStage>(text_of(stage, "stage"));
  Tensor out;
  {
    const Release release;
    const NoGrad no_grad;
    out = attention_score_array(call.q, call.k, call.rule, which);
  }
  return call.result(out, true);
}

py::tuple statistics(const py::object& q, const py::object& k, const py::tuple& rule) {
  const Call call(q, k, py::none(), rule);
  AttentionStatistics s;
  {
    const Release release;
    const NoGrad no_grad;
    s = attention_statistics(call.q, call.k, call.rule);
  }
  const auto shaped = [&](const Tensor& t) { return with_axes_of_q(t, call.rank, true, call.packed()); };
  const auto array = [&](const Tensor& t) { return to_numpy(shaped(t), call.arrays.half()); };
  return py::make_tuple(array(s.lse), array(s.entropy), array(s.max_weight), to_whole_numbers(shaped(s.argmax)),
                        array(s.mean_distance));
}

py::array softmax_of(const py::object& x_in, const py::object& lens_in) {
  Borrowed arrays;
  const Tensor x = arrays.tensor(x_in, "x");
  const std::vector<int64_t> lens = whole_numbers(lens_in, "valid_lens");
  Tensor out;
  {
    const Release release;
    const NoGrad no_grad;
    out = lens_in.is_none() ? softmax(x) : masked_softmax(x, lens);
  }
  return to_numpy(out, arrays.half());
}

}  // namespace

void add_attention(py::module_& m) {
  m.attr("rule_names") = rule_names();
  m.def("attention", attend);
  m.def("attention_weights", weights);
  m.def("attention_stats", statistics);
  m.def("masked_softmax", softmax_of);
  m.def("attention_grad", attend_and_differentiate);
  py::class_<Rule>(m, "Rule", "A rule that was read.").def(py::init<const py::tuple&>());
  py::class_<Rows>(m, "Rows", "One number per row of queries.");
  m.def("forward", forward);
  m.def("backward", backward);
}

}  // namespace qkv::python
