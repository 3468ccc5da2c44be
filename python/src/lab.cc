// qkv.lab: an experiment's predictions and measurements as arrays.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include "parts.h"
#include "qkv/lab/present.h"
#include "rule.h"

namespace qkv::python {
namespace {

namespace py = pybind11;

struct LabRun {
  const lab::Experiment* experiment;
  Settings settings;
  lab::Result result;

  template <class T>
  py::array_t<T> column(T (*of)(const lab::Row&)) const {
    py::array_t<T> values(static_cast<py::ssize_t>(result.rows.size()));
    for (size_t i = 0; i < result.rows.size(); ++i) values.mutable_at(static_cast<py::ssize_t>(i)) = of(result.rows[i]);
    return values;
  }
  std::vector<std::string> texts(std::string (*of)(const lab::Row&)) const {
    std::vector<std::string> all;
    for (const lab::Row& row : result.rows) all.push_back(of(row));
    return all;
  }
  std::string text() const { return lab::terminal_result(*experiment, result, Terminal{}); }
  std::string html() const {
    Report report(experiment->name, experiment->summary);
    lab::add_to_report(report, *experiment, settings, result);
    return report.html();
  }
};

LabRun run_lab(const py::object& name, const std::vector<std::pair<std::string, std::string>>& given) {
  LabRun run{&lab::find_experiment(text_of(name, "name")), {}, {}};
  run.settings = run.experiment->settings();
  for (const auto& [key, value] : given) run.settings.set(key, value);
  const py::gil_scoped_release release;
  run.result = run.experiment->run(run.settings);
  return run;
}

}  // namespace

void add_lab(py::module_& m) {
  using lab::Row;
  py::class_<LabRun>(m, "LabRun")
      .def_property_readonly("name", [](const LabRun& r) { return r.experiment->name; })
      .def_property_readonly("summary", [](const LabRun& r) { return r.experiment->summary; })
      .def_property_readonly("claim", [](const LabRun& r) { return r.result.claim; })
      .def_property_readonly("formula", [](const LabRun& r) { return lab::plain_formula(r.result.formula); })
      .def_property_readonly("notes", [](const LabRun& r) { return r.result.notes; })
      .def_property_readonly("at", [](const LabRun& r) { return r.texts([](const Row& row) { return row.at; }); })
      .def_property_readonly("quantity",
                             [](const LabRun& r) { return r.texts([](const Row& row) { return row.quantity; }); })
      .def_property_readonly(
          "predicted", [](const LabRun& r) { return r.column<double>([](const Row& row) { return row.predicted; }); })
      .def_property_readonly(
          "measured", [](const LabRun& r) { return r.column<double>([](const Row& row) { return row.measured; }); })
      .def_property_readonly(
          "tolerance", [](const LabRun& r) { return r.column<double>([](const Row& row) { return row.tolerance; }); })
      .def_property_readonly(
          "row_agrees", [](const LabRun& r) { return r.column<bool>([](const Row& row) { return row.agrees(); }); })
      .def_property_readonly("agrees", [](const LabRun& r) { return r.result.disagreements() == 0; })
      .def_property_readonly("verdict", [](const LabRun& r) { return lab::verdict(r.result); })
      .def("text", &LabRun::text)
      .def("html", &LabRun::html);
  m.def("lab", run_lab);
  m.def("experiments", [] {
    std::vector<std::pair<std::string, std::string>> all;
    for (const lab::Experiment& e : lab::experiment_table()) all.emplace_back(e.name, e.summary);
    return all;
  });
}

}  // namespace qkv::python
