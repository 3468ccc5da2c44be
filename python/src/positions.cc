// Where a token stands: sinusoidal and rotary positions, and the biases of ALiBi.
#include "qkv/nn/positions.h"

#include <pybind11/stl.h>

#include "parts.h"
#include "qkv/core/autograd.h"
#include "rule.h"

namespace qkv::python {
namespace {

py::array sinusoidal(const py::object& n, const py::object& d) {
  return to_numpy(sinusoidal_positions(whole_number_of(n, "n"), whole_number_of(d, "d")));
}

int64_t size_of(const py::object& value, const char* name) {
  const int64_t size = whole_number_of(value, name);
  if (size < 0) throw ConfigError(std::string(name) + " must be at least 0");
  return size;
}

py::array biases(const py::object& heads, const py::object& Lq, const py::object& Lk, const py::object& offset) {
  return to_numpy(
      alibi_bias(size_of(heads, "heads"), size_of(Lq, "Lq"), size_of(Lk, "Lk"), whole_number_of(offset, "offset")));
}

py::array turned(const py::object& x_in, const py::object& positions_in, const py::object& base_in) {
  Borrowed arrays;
  const Tensor x = arrays.tensor(x_in, "x");
  const std::vector<int64_t> positions = whole_numbers(positions_in, "positions");
  const double base = number_of(base_in, "base");
  Tensor out;
  {
    const py::gil_scoped_release release;
    const NoGrad no_grad;
    out = rotary(x, positions, base);
  }
  return to_numpy(out, arrays.half());
}

}  // namespace

void add_positions(py::module_& m) {
  m.def("sinusoidal_positions", sinusoidal);
  m.def("alibi_slopes", [](const py::object& heads) { return alibi_slopes(size_of(heads, "heads")); });
  m.def("alibi_bias", biases);
  m.def("rotary", turned);
}

}  // namespace qkv::python
