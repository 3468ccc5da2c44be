// qkv.open: a trained run, its predictions, attention, metrics and weights.
#include "qkv/runs.h"

#include <pybind11/stl.h>

#include "arrays.h"
#include "parts.h"
#include "qkv/train/run_folder.h"
#include "rule.h"

namespace qkv::python {
namespace {

using Release = py::gil_scoped_release;

py::dict attention_dict(const RunAttention& a) {
  return py::dict(py::arg("site") = a.site, py::arg("layer") = a.layer, py::arg("causal") = a.causal,
                  py::arg("queries") = a.queries, py::arg("keys") = a.keys, py::arg("weights") = to_numpy(a.weights));
}

py::dict trace(Run& run, const py::object& text) {
  const std::string input = text_of(text, "input");
  RunTrace t;
  {
    const Release release;
    t = run.trace(input);
  }
  py::list attention;
  for (const RunAttention& a : t.attention) attention.append(attention_dict(a));
  return py::dict(py::arg("source") = t.source, py::arg("target") = t.target, py::arg("output") = t.output,
                  py::arg("attention") = attention);
}

py::list predict(Run& run, const std::vector<std::string>& inputs, const py::dict& options) {
  DecodeOptions o;
  SampleOptions sample;
  const auto given = [&](const char* name) { return py::object(options[name]); };
  const auto whole = [&](const char* name) { return whole_number_of(given(name), name); };
  const auto number = [&](const char* name) { return number_of(given(name), name); };
  o.beam = whole("beam");
  o.n_best = whole("n_best");
  o.max_length = whole("max_length");
  o.length_penalty = number("length_penalty");
  o.align = flag_of(given("align"), "align");
  sample.temperature = number("temperature");
  sample.top_k = whole("top_k");
  sample.top_p = number("top_p");
  const int64_t seed = whole("seed");
  if (seed < 0) throw ConfigError("predict: seed must be at least 0");
  sample.seed = static_cast<uint64_t>(seed);
  if (o.beam < 1 || o.n_best < 1 || o.max_length < 0) throw ConfigError("predict: beam and n_best must be at least 1");
  if (flag_of(given("sample"), "sample")) o.sample = sample;
  std::vector<std::vector<Prediction>> all;
  {
    const Release release;
    all = run.predict(inputs, o);
  }
  py::list answers;
  for (const std::vector<Prediction>& best : all) {
    py::list list;
    for (const Prediction& p : best) list.append(py::make_tuple(p.text, p.score, p.alignment, p.probability));
    answers.append(list);
  }
  return answers;
}

py::dict parameters(Run& run) {
  py::dict all;
  for (const NamedParameter& p : run.parameters()) all[py::str(p.name)] = to_numpy(p.value.clone());
  return all;
}

// The evaluations of a run as columns.
py::dict metrics(const std::string& folder) {
  const std::vector<EvaluationRecord> records = RunFolder::open(folder).history();
  py::dict columns;
  const auto column = [&](const std::string& name, auto value_of) {
    using T = decltype(value_of(records[0]));
    py::array_t<T> values(static_cast<py::ssize_t>(records.size()));
    for (size_t i = 0; i < records.size(); ++i) values.mutable_at(static_cast<py::ssize_t>(i)) = value_of(records[i]);
    columns[py::str(name)] = values;
  };
  column("step", [](const EvaluationRecord& r) { return r.step; });
  column("epoch", [](const EvaluationRecord& r) { return r.epoch; });
  column("train_loss", [](const EvaluationRecord& r) { return r.train_loss; });
  column("lr", [](const EvaluationRecord& r) { return r.lr; });
  column("seconds", [](const EvaluationRecord& r) { return r.seconds; });
  for (const auto& [name, first] : records.empty() ? Metrics{} : records[0].validation) {
    column(name, [&name = name](const EvaluationRecord& r) { return metric_of(r.validation, name); });
  }
  return columns;
}

}  // namespace

void add_runs(py::module_& m) {
  py::class_<Run>(m, "Run")
      .def_property_readonly("task", &Run::task)
      .def_property_readonly("weights_file", &Run::weights)
      .def("settings", &Run::settings)
      .def("predict", predict)
      .def("trace", trace)
      .def("parameters", parameters)
      .def("examples", [](Run& run, const py::object& n) {
        const int64_t most = whole_number_of(n, "n");
        const Release release;
        return run.examples(most);
      });
  m.def("open_run", [](const std::string& path, const py::object& which) {
    const std::string weights = text_of(which, "weights");
    const Release release;
    return open_run(path, weights);
  });
  m.def("metrics", metrics);
}

}  // namespace qkv::python
