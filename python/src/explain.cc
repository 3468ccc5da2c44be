// qkv.explain: every intermediate value of a small attention example.
#include "qkv/lab/explain/explain.h"

#include <pybind11/stl.h>

#include "parts.h"
#include "rule.h"

namespace qkv::python {
namespace {

py::object numbers_of(const py::object& object, const char* name) {
  try {
    return py::module_::import("numpy").attr("asarray")(object, "f8");
  } catch (const py::error_already_set&) {
    dtype_error(std::string(name) + " is a " + Py_TYPE(object.ptr())->tp_name + "; expected a matrix of numbers");
  }
}

// A matrix in double precision, one row where a vector is given; None is an undefined tensor.
Tensor matrix(const py::object& object, const char* name, Borrowed& arrays) {
  if (object.is_none()) return {};
  const Tensor t = arrays.tensor(numbers_of(object, name), name);
  if (t.rank() == 1) return t.as_strided({1, t.dim(0)}, {0, t.strides()[0]}, t.storage_offset()).clone();
  if (t.rank() != 2 || t.numel() == 0) {
    throw ShapeError("[explain] " + std::string(name) + " has shape " + t.shape().str() + "; expected a matrix");
  }
  return t.clone();
}

lab::Explanation explanation(const py::dict& given, const py::tuple& rule) {
  Borrowed arrays;
  const auto of = [&](const char* name) -> py::object {
    return given.contains(name) ? py::object(given[name]) : py::none();
  };
  lab::ExplainInput in;
  const Tensor x = matrix(of("x"), "x", arrays), q = matrix(of("q"), "q", arrays), k = matrix(of("k"), "k", arrays);
  const Tensor v = matrix(of("v"), "v", arrays);
  if (!x.defined() && !q.defined()) {
    in = lab::builtin_example(text_of(of("example"), "example"));
  } else {
    if (!x.defined() && !k.defined()) throw ConfigError("explain: give x, or q and k");
    in.title = "Attention on your matrices";
    const auto or_x = [&](const Tensor& t, const char* name) {
      return t.defined() ? lab::ExplainInput::Named{name, t} : lab::ExplainInput::Named{"X", x};
    };
    in.q = or_x(q, "q");
    in.k = or_x(k, "k");
    in.v = v.defined() ? or_x(v, "v") : in.k;
    in.w_q = matrix(of("w_q"), "w_q", arrays);
    in.w_k = matrix(of("w_k"), "w_k", arrays);
    in.w_v = matrix(of("w_v"), "w_v", arrays);
    in.w_o = matrix(of("w_o"), "w_o", arrays);
    in.heads = whole_number_of(of("heads"), "heads");
    if (in.heads < 1) throw ConfigError("explain: heads must be at least 1");
  }
  in.rule = rule_of(rule, arrays);
  if (in.rule.bias.defined()) in.rule.bias = in.rule.bias.to(DType::f64);
  in.d_out = matrix(of("d_out"), "d_out", arrays);
  in.backward = flag_of(of("backward"), "backward");
  return lab::explain(in);
}

int digits_of(const py::object& value) {
  const int64_t digits = whole_number_of(value, "digits");
  if (digits < 1 || digits > 17) throw ConfigError("explain: digits must be from 1 to 17");
  return static_cast<int>(digits);
}

py::dict values(const lab::Explanation& e) {
  py::dict all;
  for (const lab::ExplainStep& s : e.steps) all[py::str(s.name)] = to_numpy(s.value.clone());
  return all;
}

}  // namespace

void add_explain(py::module_& m) {
  py::class_<lab::Explanation>(m, "Explanation")
      .def_property_readonly("title", [](const lab::Explanation& e) { return e.title; })
      .def("values", values)
      .def("formulas",
           [](const lab::Explanation& e) {
             py::dict all;
             for (const lab::ExplainStep& s : e.steps) all[py::str(s.name)] = s.formula;
             return all;
           })
      .def("text", [](const lab::Explanation& e,
                      const py::object& digits) { return lab::explanation_text(e, digits_of(digits)); })
      .def("latex", [](const lab::Explanation& e, const py::object& digits) {
        return lab::explanation_latex(e, digits_of(digits));
      });
  m.def("explain", explanation);
}

}  // namespace qkv::python
