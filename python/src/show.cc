// Maps of weights as one page of pictures, for builds without the page's script.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include "parts.h"
#include "qkv/report/report.h"
#include "qkv/view/heatmap.h"

namespace qkv::python {
namespace {

namespace py = pybind11;

// weights [heads, rows, columns].
std::string maps_html(const std::string& title, const py::array_t<float, py::array::c_style>& weights,
                      const std::vector<std::string>& rows, const std::vector<std::string>& columns) {
  Report report(title);
  std::vector<Drawing> maps;
  const int64_t cells = weights.shape(1) * weights.shape(2);
  for (py::ssize_t h = 0; h < weights.shape(0); ++h) {
    const float* first = weights.data() + h * cells;
    maps.push_back(draw_heatmap({.title = "head " + std::to_string(h),
                                 .rows = weights.shape(1),
                                 .columns = weights.shape(2),
                                 .values = {first, first + cells},
                                 .row_labels = rows,
                                 .column_labels = columns}));
  }
  return report.figures(maps).html();
}

}  // namespace

void add_show(py::module_& m) { m.def("maps_html", maps_html); }

}  // namespace qkv::python
