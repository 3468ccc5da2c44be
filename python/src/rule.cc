// What a call says of masks and scores, as a ScoreRule: one row per name.
#include "rule.h"

#include <string_view>

namespace qkv::python {
namespace {

// What a row sets: the rule, and what can only be settled when all names are read.
struct Reading {
  ScoreRule rule;
  std::string score = "scaled-dot";
  Borrowed& arrays;
};

void read_window(const py::object& value, ScoreRule& rule) {
  if (value.is_none()) return;
  const auto side = [](const py::object& o) { return o.is_none() ? -1 : whole_number_of(o, "window"); };
  if (py::isinstance<py::tuple>(value) || py::isinstance<py::list>(value)) {
    const auto pair = py::reinterpret_borrow<py::sequence>(value);
    if (pair.size() != 2) throw ConfigError("[attention] window must be a number or (left, right)");
    rule.window_left = side(pair[0]);
    rule.window_right = side(pair[1]);
  } else {
    rule.window_left = rule.window_right = whole_number_of(value, "window");
  }
}

void read_offset(const py::object& value, ScoreRule& rule) {
  if (value.is_none()) return;
  if (PyIndex_Check(value.ptr()) != 0 && !py::isinstance<py::array>(value)) {
    rule.offset = whole_number_of(value, "offset");
  } else {
    rule.batch_offsets = whole_numbers(value, "offset");
  }
}

void read_seed(const py::object& value, ScoreRule& rule) {
  const int64_t seed = whole_number_of(value, "seed");
  if (seed < 0) throw ConfigError("[attention] seed must be at least 0");
  rule.dropout_seed = static_cast<uint64_t>(seed);
}

struct Row {
  const char* name;
  void (*read)(const py::object& value, Reading& r);
};

const Row kRows[] = {
    {"causal", [](const py::object& o, Reading& r) { r.rule.causal = flag_of(o, "causal"); }},
    {"scale",
     [](const py::object& o, Reading& r) {
       if (!o.is_none()) r.rule.scale = number_of(o, "scale");
     }},
    {"mask", [](const py::object& o, Reading& r) { r.rule.mask = mask_of(o); }},
    {"valid_lens", [](const py::object& o, Reading& r) { r.rule.key_lens = whole_numbers(o, "valid_lens"); }},
    {"window", [](const py::object& o, Reading& r) { read_window(o, r.rule); }},
    {"bias", [](const py::object& o, Reading& r) { r.rule.bias = r.arrays.optional(o, "bias"); }},
    {"softcap",
     [](const py::object& o, Reading& r) {
       if (!o.is_none()) r.rule.softcap = number_of(o, "softcap");
     }},
    {"dropout", [](const py::object& o, Reading& r) { r.rule.dropout = number_of(o, "dropout"); }},
    {"seed", [](const py::object& o, Reading& r) { read_seed(o, r.rule); }},
    {"normaliser",
     [](const py::object& o, Reading& r) { r.rule.normaliser = parse<Normaliser>(text_of(o, "normaliser")); }},
    {"score", [](const py::object& o, Reading& r) { r.score = text_of(o, "score"); }},
    {"additive", [](const py::object& o, Reading& r) { r.rule.additive = r.arrays.optional(o, "additive"); }},
    {"offset", [](const py::object& o, Reading& r) { read_offset(o, r.rule); }},
    {"q_offsets", [](const py::object& o, Reading& r) { r.rule.q_offsets = whole_numbers(o, "q_offsets"); }},
    {"k_offsets", [](const py::object& o, Reading& r) { r.rule.k_offsets = whole_numbers(o, "k_offsets"); }},
};

void settle_score(Reading& r) {
  if (r.score == "additive") {
    if (!r.rule.additive.defined()) {
      throw ConfigError("[attention] score 'additive' needs its weights: additive=w of shape [D]");
    }
  } else if (parse<Score>(r.score) == Score::dot && !r.rule.scale && !r.rule.additive.defined()) {
    r.rule.scale = 1;
  }
}

[[noreturn]] void wrong_type(const char* name, const char* expected, const py::object& value) {
  dtype_error(std::string(name) + " must be " + expected + ", not " + Py_TYPE(value.ptr())->tp_name);
}

}  // namespace

py::tuple rule_names() {
  py::tuple names(std::size(kRows));
  for (size_t i = 0; i < std::size(kRows); ++i) names[i] = kRows[i].name;
  return names;
}

ScoreRule rule_of(const py::tuple& values, Borrowed& arrays) {
  if (values.size() != std::size(kRows)) throw Error("[attention] a rule of another length than rule_names");
  Reading reading{.rule = {}, .arrays = arrays};
  for (size_t i = 0; i < std::size(kRows); ++i) kRows[i].read(values[i], reading);
  settle_score(reading);
  return std::move(reading.rule);
}

double number_of(const py::object& value, const char* name) {
  if (PyBool_Check(value.ptr()) || PyNumber_Check(value.ptr()) == 0) wrong_type(name, "a number", value);
  const double x = PyFloat_AsDouble(value.ptr());
  if (x == -1 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    wrong_type(name, "a number", value);
  }
  return x;
}

int64_t whole_number_of(const py::object& value, const char* name) {
  if (PyBool_Check(value.ptr()) || PyIndex_Check(value.ptr()) == 0) wrong_type(name, "a whole number", value);
  const py::object index = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
  int overflow = 0;
  const int64_t x = index ? PyLong_AsLongLongAndOverflow(index.ptr(), &overflow) : 0;
  if (!index || overflow != 0) {
    PyErr_Clear();
    wrong_type(name, "a whole number of at most 63 bits", value);
  }
  return x;
}

bool flag_of(const py::object& value, const char* name) {
  if (PyBool_Check(value.ptr())) return value.ptr() == Py_True;
  if (std::string_view(Py_TYPE(value.ptr())->tp_name) != "numpy.bool_") wrong_type(name, "True or False", value);
  return PyObject_IsTrue(value.ptr()) == 1;
}

std::string text_of(const py::object& value, const char* name) {
  if (!py::isinstance<py::str>(value)) wrong_type(name, "a string", value);
  return value.cast<std::string>();
}

}  // namespace qkv::python
