// qkv.open: a trained run, its predictions, attention, metrics and weights.
#include "qkv/runs.h"

#include <pybind11/stl.h>

#include "arrays.h"
#include "parts.h"
#include "qkv/train/run_folder.h"

namespace qkv::python {
namespace {

using Release = py::gil_scoped_release;

py::dict attention_dict(const RunAttention& a) {
  return py::dict(py::arg("site") = a.site, py::arg("layer") = a.layer, py::arg("causal") = a.causal,
                  py::arg("queries") = a.queries, py::arg("keys") = a.keys, py::arg("weights") = to_numpy(a.weights));
}

py::dict trace(Run& run, const std::string& input) {
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
  bool sampled = false;
  for (const auto& [key, value] : options) {
    const auto name = key.cast<std::string>();
    if (name == "beam") o.beam = value.cast<int64_t>();
    if (name == "length_penalty") o.length_penalty = value.cast<double>();
    if (name == "max_length") o.max_length = value.cast<int64_t>();
    if (name == "n_best") o.n_best = value.cast<int64_t>();
    if (name == "align") o.align = value.cast<bool>();
    if (name == "sample") sampled = value.cast<bool>();
    if (name == "temperature") sample.temperature = value.cast<double>();
    if (name == "top_k") sample.top_k = value.cast<int64_t>();
    if (name == "top_p") sample.top_p = value.cast<double>();
    if (name == "seed") sample.seed = value.cast<uint64_t>();
  }
  if (o.beam < 1 || o.n_best < 1 || o.max_length < 0) throw ConfigError("predict: beam and n_best must be at least 1");
  if (sampled) o.sample = sample;
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
      .def("examples", [](Run& run, int64_t n) {
        const Release release;
        return run.examples(n);
      });
  m.def("open_run", [](const std::string& path, const std::string& weights) {
    const Release release;
    return open_run(path, weights);
  });
  m.def("metrics", metrics);
}

}  // namespace qkv::python
