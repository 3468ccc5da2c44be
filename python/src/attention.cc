// qkv.attention and its gradient, weights and statistics.
#include "parts.h"

#include <pybind11/stl.h>

#include <array>
#include <memory>

#include "errors.h"
#include "qkv/core/autograd.h"
#include "qkv/ops/ops.h"
#include "rule.h"

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
        v(arrays.optional(v_in, "v")),
        rank(q.rank()) {
    if (k.rank() == rank && (!v.defined() || v.rank() == rank)) {
      q = lifted(q);
      k = lifted(k);
      v = lifted(v);
    }
  }
  bool packed() const { return !rule.q_offsets.empty() || !rule.k_offsets.empty(); }
  py::array result(const Tensor& t, bool heads = false) const {
    return to_numpy(with_axes_of_q(t, rank, heads, packed()), arrays.half());
  }
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

// A forward pass that backward can follow: keeps the arrays, the result and one number per row.
class Recorded {
 public:
  static constexpr size_t kInputs = 5;  // q, k, v, bias, additive
  using Wanted = std::array<bool, kInputs>;

  Recorded(const py::object& q, const py::object& k, const py::object& v, const py::tuple& rule, const Wanted& wanted)
      : call_(std::make_unique<Call>(q, k, v, rule)) {
    Tensor* const inputs[kInputs] = {&call_->q, &call_->k, &call_->v, &call_->rule.bias, &call_->rule.additive};
    for (size_t i = 0; i < kInputs; ++i) {
      leaves_[i] = *inputs[i];
      if (leaves_[i].defined() && wanted[i]) leaves_[i].set_requires_grad(true);
    }
    const Release release;
    out_ = attention(call_->q, call_->k, call_->v, call_->rule);
  }

  py::array out() const { return call_->result(out_.detach()); }

  // The gradients of the inputs that want one, None for the others.
  py::tuple backward(const py::object& d_out_in) {
    if (!out_.defined()) throw Error("[attention] backward was called before; the recording is used up");
    Borrowed arrays;
    Tensor d_out = arrays.tensor(d_out_in, "d_out");
    if (call_->rank == 2) d_out = lifted(d_out);
    if (!(d_out.shape() == out_.shape()) || d_out.dtype() != out_.dtype()) {
      throw ShapeError("[attention] d_out is " + std::string(name_of(d_out.dtype())) + " " + d_out.shape().str() +
                       "; expected the result's " + name_of(out_.dtype()) + " " + out_.shape().str());
    }
    {
      const Release release;
      if (out_.node() != nullptr) out_.backward(d_out);
    }
    py::tuple grads(kInputs);
    for (size_t i = 0; i < kInputs; ++i) {
      const Tensor grad = leaves_[i].defined() ? leaves_[i].grad() : Tensor();
      grads[i] = !grad.defined() ? py::object(py::none())
                 : i < 3         ? py::object(call_->result(grad))
                                 : py::object(to_numpy(grad, call_->arrays.half()));
      leaves_[i] = Tensor();
    }
    out_ = Tensor();
    call_.reset();
    return grads;
  }

 private:
  std::unique_ptr<Call> call_;
  Tensor leaves_[kInputs];
  Tensor out_;
};

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
  py::class_<Recorded>(m, "Recorded", "A forward pass whose gradients may be asked for once.")
      .def(py::init<const py::object&, const py::object&, const py::object&, const py::tuple&,
                    const Recorded::Wanted&>())
      .def("out", &Recorded::out, "The result.")
      .def("backward", &Recorded::backward, "The gradients of q, k, v, bias and additive; None where none was wanted.");
}

}  // namespace qkv::python
